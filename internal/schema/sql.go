package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// Table is the keyed state of an operator as a table of Flink's savepoint connector
// (Flink 2.1 and later).
type Table struct {
	Name    string
	Path    string // URI of the snapshot's directory
	UID     string // of the operator; "": Hash names it
	Hash    string
	Backend string // "rocksdb" or "hashmap"
	Key     *types.Type
	Columns []Column
	Left    []string // states that a table cannot have, with the reason
}

// Column is a state of a table.
type Column struct {
	State   string
	Kind    string // value, list or map
	UserKey *types.Type
	Value   *types.Type
}

// SQL returns the statement that creates the table. The connector reads classes of
// POJOs, which must be on the class path of the SQL client. Types that SQL cannot
// express are an error with the path to the part.
func (t *Table) SQL() (string, error) {
	var b strings.Builder
	for _, left := range t.Left {
		fmt.Fprintf(&b, "-- not in the table: %s\n", strings.ReplaceAll(left, "\n", " "))
	}
	key, err := sqlType(t.Key)
	if err != nil {
		return "", fmt.Errorf("the key: %w", err)
	}
	names := columnNames(t.Columns)
	fmt.Fprintf(&b, "CREATE TABLE %s (\n  %s %s,\n", quoteName(t.Name), quoteName(names[0]), key)
	with := []string{"'connector' = 'savepoint'", "'state.backend.type' = " + quoteText(t.Backend), "'state.path' = " + quoteText(t.Path)}
	if t.UID != "" {
		with = append(with, "'operator.uid' = "+quoteText(t.UID))
	} else {
		with = append(with, "'operator.uid.hash' = "+quoteText(t.Hash))
	}
	for i, c := range t.Columns {
		name := names[i+1]
		typ, err := c.sql()
		if err != nil {
			return "", fmt.Errorf("state %q: %w", c.State, err)
		}
		fmt.Fprintf(&b, "  %s %s,\n", quoteName(name), typ)
		option := func(what, text string) {
			with = append(with, quoteText("fields."+name+"."+what)+" = "+quoteText(text))
		}
		if name != c.State {
			option("state-name", c.State)
		}
		option("state-type", strings.ToUpper(c.Kind))
		if c.UserKey != nil && c.UserKey.Word == "pojo" {
			option("key-class", c.UserKey.Class)
		}
		if c.Value.Word == "pojo" {
			option("value-class", c.Value.Class)
		}
	}
	fmt.Fprintf(&b, "  PRIMARY KEY (%s) NOT ENFORCED\n) WITH (\n  %s\n);\n", quoteName(names[0]), strings.Join(with, ",\n  "))
	return b.String(), nil
}

// SQL returns the type of the column, or why it has none.
func (c *Column) sql() (string, error) {
	value, err := sqlType(c.Value)
	if err != nil {
		return "", err
	}
	switch c.Kind {
	case "list":
		return "ARRAY<" + value + ">", nil
	case "map":
		key, err := sqlType(c.UserKey)
		if err != nil {
			return "", err
		}
		return "MAP<" + key + ", " + value + ">", nil
	}
	return value, nil
}

// Fits returns an error unless SQL has a type for the column.
func (c *Column) Fits() error {
	_, err := c.sql()
	return err
}

var plainColumn = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// columnNames returns the names of the key and of the columns: the names of states with
// other characters replaced, each once.
func columnNames(columns []Column) []string {
	var taken []string
	add := func(name string) {
		if !plainColumn.MatchString(name) {
			name = avroName(name)
		}
		for base, n := name, 2; slices.Contains(taken, name); n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		taken = append(taken, name)
	}
	add("k")
	for _, c := range columns {
		add(c.State)
	}
	return taken
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// sqlType returns the SQL type of the values of a type.
func sqlType(t *types.Type) (string, error) {
	inner, _ := t.Deref()
	switch inner.Kind {
	case types.TypeBool:
		return "BOOLEAN", nil
	case types.TypeInt:
		return map[int]string{8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[inner.Bits], nil
	case types.TypeFloat:
		return map[int]string{32: "FLOAT", 64: "DOUBLE"}[inner.Bits], nil
	case types.TypeString, types.TypeEnum:
		return "STRING", nil
	case types.TypeBytes:
		return "BYTES", nil
	case types.TypeBigInt:
		return "DECIMAL(38, 0)", nil
	case types.TypeDecimal:
		if inner.Precision == 0 {
			return "DECIMAL(38, 18)", nil
		}
		return fmt.Sprintf("DECIMAL(%d, %d)", inner.Precision, inner.Scale), nil
	case types.TypeInstant:
		return fmt.Sprintf("TIMESTAMP_LTZ(%d)", inner.Precision), nil
	case types.TypeDateTime:
		return fmt.Sprintf("TIMESTAMP(%d)", inner.Precision), nil
	case types.TypeDate:
		return "DATE", nil
	case types.TypeTimeOfDay:
		return "TIME", nil
	case types.TypeList:
		of, err := sqlType(inner.Parts[0])
		return "ARRAY<" + of + ">", err
	case types.TypeMap:
		key, err := sqlType(inner.Parts[0])
		if err != nil {
			return "", err
		}
		of, err := sqlType(inner.Parts[1])
		return "MAP<" + key + ", " + of + ">", err
	case types.TypeTuple, types.TypeRow, types.TypeRecord:
		if len(inner.Parts) == 0 {
			break
		}
		all := make([]string, len(inner.Parts))
		for i, p := range inner.Parts {
			name := "f" + strconv.Itoa(i)
			if inner.Names != nil {
				name = inner.Names[i]
			}
			of, err := sqlType(p)
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			all[i] = quoteName(name) + " " + of
		}
		return "ROW<" + strings.Join(all, ", ") + ">", nil
	case types.TypeNotDecoded:
		return "", inner.Why
	}
	return "", fmt.Errorf("SQL has no type for %s", inner.Short(nil))
}
