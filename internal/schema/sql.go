package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// Table is the keyed state of an operator as a table of Flink's savepoint connector
// (Flink 2.1 and later). What the connector of 2.3 reads is in docs/flink-notes.md.
type Table struct {
	Name    string
	Path    string // URI of the snapshot's directory
	UID     string // of the operator; "": Hash names it
	Hash    string
	Key     *types.Type
	Columns []Column
	Left    []string // states that a table cannot have, with the reason
}

// Column is a state of a table. Its name is the name of the state, by which the connector
// finds the serializers.
type Column struct {
	State   string
	Kind    string // value, list or map
	UserKey *types.Type
	Value   *types.Type
	TTL     bool // values have a time to live
}

// SQL returns the statement that creates the table. The connector reads classes of
// POJOs, which must be on the class path of the SQL client. Types that the connector does
// not read are an error with the path to the part.
func (t *Table) SQL() (string, error) {
	var b strings.Builder
	for _, left := range t.Left {
		fmt.Fprintf(&b, "-- not in the table: %s\n", strings.ReplaceAll(left, "\n", " "))
	}
	key, err := columnOf(t.Key)
	if err == nil && key.class == "" {
		err = fmt.Errorf("the connector cannot make the serializer of %s by a class", t.Key.Short(nil))
	}
	if err != nil {
		return "", fmt.Errorf("the key: %w", err)
	}
	name := t.keyName()
	fmt.Fprintf(&b, "CREATE TABLE %s (\n  %s %s,\n", quoteName(t.Name), quoteName(name), key.sql)
	with := []string{"'connector' = 'savepoint'", "'state.backend.type' = 'hashmap'", "'state.path' = " + quoteText(t.Path)}
	if t.UID != "" {
		with = append(with, "'operator.uid' = "+quoteText(t.UID))
	} else {
		with = append(with, "'operator.uid.hash' = "+quoteText(t.Hash))
	}
	option := func(column, what, text string) {
		with = append(with, quoteText("fields."+column+"."+what)+" = "+quoteText(text))
	}
	if !key.inferred {
		option(name, "value-class", key.class)
	}
	for _, c := range t.Columns {
		typ, userKey, value, err := c.types()
		if err != nil {
			return "", fmt.Errorf("state %q: %w", c.State, err)
		}
		fmt.Fprintf(&b, "  %s %s,\n", quoteName(c.State), typ)
		option(c.State, "state-type", strings.ToUpper(c.Kind))
		if c.Kind == "map" && !userKey.inferred && userKey.class != "" {
			option(c.State, "key-class", userKey.class)
		}
		if value.class != "" && (!value.inferred || c.TTL) {
			option(c.State, "value-class", value.class)
		}
	}
	fmt.Fprintf(&b, "  PRIMARY KEY (%s) NOT ENFORCED\n) WITH (\n  %s\n);\n", quoteName(name), strings.Join(with, ",\n  "))
	return b.String(), nil
}

// keyName returns a name for the column of the keys that no state has.
func (t *Table) keyName() string {
	name := "k"
	for n := 2; slices.ContainsFunc(t.Columns, func(c Column) bool { return c.State == name }); n++ {
		name = "k_" + strconv.Itoa(n)
	}
	return name
}

// types returns the type of the column and the types of its parts, or why it has none.
func (c *Column) types() (typ string, userKey, value column, err error) {
	if value, err = columnOf(c.Value); err != nil {
		return "", userKey, value, err
	}
	if c.TTL && value.class == "" {
		return "", userKey, value, fmt.Errorf("with a time to live, the connector cannot make the serializer of %s by a class", c.Value.Short(nil))
	}
	switch inner, _ := c.Value.Deref(); c.Kind {
	case "list":
		return "ARRAY<" + value.sql + ">", userKey, value, nil
	case "map":
		if userKey, err = columnOf(c.UserKey); err != nil {
			return "", userKey, value, err
		}
		return "MAP<" + userKey.sql + ", " + value.sql + ">", userKey, value, nil
	default:
		if inner.Kind == types.TypeList { // the connector takes it for list state
			return "", userKey, value, errors.New("the connector does not read lists in value state")
		}
	}
	return value.sql, userKey, value, nil
}

// Fits returns an error unless the connector reads the column.
func (c *Column) Fits() error {
	_, _, _, err := c.types()
	return err
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// column is how the connector reads the values of a type.
type column struct {
	sql      string // SQL type
	class    string // Java class by which the connector makes the serializer; "": it cannot
	inferred bool   // the connector makes it by the SQL type
}

// scalars are types without parts by their words. What the connector cannot convert it
// reads as text, as Java's toString returns it.
var scalars = map[string]column{
	"boolean": {"BOOLEAN", "java.lang.Boolean", true}, "byte": {"TINYINT", "java.lang.Byte", true}, "short": {"SMALLINT", "java.lang.Short", true},
	"int": {"INT", "java.lang.Integer", true}, "long": {"BIGINT", "java.lang.Long", true},
	"float": {"FLOAT", "java.lang.Float", true}, "double": {"DOUBLE", "java.lang.Double", true},
	"string": {"STRING", "java.lang.String", true}, "bytes": {"BYTES", "[B", true},
	"char": {"STRING", "java.lang.Character", false}, "Instant": {"STRING", "java.time.Instant", false},
	"BigInteger": {"STRING", "java.math.BigInteger", false}, "BigDecimal": {"STRING", "java.math.BigDecimal", false},
}

const tupleClasses = "org.apache.flink.api.java.tuple."

// columnOf returns how the connector reads the values of a type.
func columnOf(t *types.Type) (column, error) {
	inner, _ := t.Deref()
	if c, ok := scalars[inner.Word]; ok {
		return c, nil
	}
	switch inner.Kind {
	case types.TypeEnum:
		return column{sql: "STRING", class: inner.Class}, nil
	case types.TypeInt, types.TypeFloat, types.TypeString, types.TypeBigInt, types.TypeDecimal, types.TypeInstant, types.TypeDateTime, types.TypeDate, types.TypeTimeOfDay:
		return column{sql: "STRING"}, nil
	case types.TypeList:
		if inner.Word != "list" && inner.Word != "set" {
			break
		}
		of, err := columnOf(inner.Parts[0])
		return column{sql: "ARRAY<" + of.sql + ">"}, err
	case types.TypeTuple, types.TypeRecord:
		pojo := inner.Word == "pojo"
		if len(inner.Parts) == 0 || !pojo && !strings.HasPrefix(inner.Class, tupleClasses) {
			break
		}
		c := column{}
		if pojo {
			c.class = inner.Class
		}
		all := make([]string, len(inner.Parts))
		for i, p := range inner.Parts {
			name := "f" + strconv.Itoa(i)
			if inner.Names != nil {
				name = inner.Names[i]
			}
			of, err := columnOf(p)
			if err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			all[i] = quoteName(name) + " " + of.sql
		}
		c.sql = "ROW<" + strings.Join(all, ", ") + ">"
		return c, nil
	case types.TypeNotDecoded:
		return column{}, inner.Why
	}
	return column{}, fmt.Errorf("the connector does not read %s", inner.Short(nil))
}
