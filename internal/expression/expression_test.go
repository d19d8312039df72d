package expression_test

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/expression"
)

var names = []expression.Name{
	{Name: "size", Type: expression.Int}, {Name: "state", Type: expression.String}, {Name: "flag", Type: expression.Bool},
	{Name: "value", Type: expression.Any}, {Name: "key", Type: expression.Any}, {Name: "KiB", Type: expression.Int, Constant: value.Int(1024)},
}

// vars have size 5, the state "offsets" and flag true.
func vars(v, k value.Value) *expression.Vars {
	return &expression.Vars{Values: []value.Value{value.Int(5), value.String("offsets"), value.Bool(true), v, k, {}}}
}

func float64Of(f float64) value.Value { return value.Float64(math.Float64bits(f)) }

func float32Of(f float32) value.Value { return value.Float32(math.Float32bits(f)) }

// decimalOf returns unscaled × 10^-scale.
func decimalOf(unscaled int64, scale int32) value.Value {
	p := make([]byte, 8)
	for i := range p {
		p[i] = byte(unscaled >> (56 - 8*i))
	}
	return value.Decimal(p, scale)
}

func bigOf(text string) value.Value {
	n, _ := new(big.Int).SetString(text, 10)
	return value.BigInt(append([]byte{0}, n.Bytes()...))
}

func listOf(v ...value.Value) value.Value { return value.List(v) }

func ints(n ...int64) value.Value {
	var all []value.Value
	for _, i := range n {
		all = append(all, value.Int(i))
	}
	return value.List(all)
}

func record(fields ...any) value.Value {
	shape, values := &value.Shape{}, []value.Value(nil)
	for i := 0; i < len(fields); i += 2 {
		shape.Names, values = append(shape.Names, fields[i].(string)), append(values, fields[i+1].(value.Value))
	}
	return value.Record(shape, values)
}

func text(s string) value.Value { return value.String(s) }

// TestTrue: each of these is true.
func TestTrue(t *testing.T) {
	order := record("id", value.Int(7), "name", text("Ada"), "items", listOf(record("sku", text("a"), "n", value.Int(2)), record("sku", text("b"), "n", value.Int(5))))
	byName := value.Map([]value.Value{text("a"), value.Int(1), text("b c"), value.Int(2)})
	byNumber := value.Map([]value.Value{value.Int(7), text("x"), value.Int(9), text("y")})
	for _, tt := range []struct {
		value value.Value
		text  string
	}{
		// Literals.
		{value.Null(), `0x2A == 42 and 0o52 == 42 and 0b101010 == 42 and 1_000 == 1000 and .5 == 0.5 and 1e3 == 1000 and 5. == 5`},
		{value.Null(), `"a\tb\u00e9\x41\101" == 'a` + "\t" + `béAA' and ` + "`a\\b` == 'a\\\\b'"},
		{value.Null(), `true != false and nil == null and value == nil`},
		{value.Bytes([]byte("a\xff")), `value == b"a\xff" and value != "a\xff" and len(value) == 2`},
		{value.Null(), "size == 5 // of five\n and /* not\nless */ flag"},
		// Arithmetic: integers are exact, a quotient is a float.
		{value.Null(), `1 + 2 * 3 == 7 and (1 + 2) * 3 == 9 and 7 / 2 == 3.5 and 7 % 4 == 3 and -7 % 4 == -3 and 2 ** 10 == 1024 and 2 ^ 3 ^ 2 == 512 and -2 ** 2 == -4`},
		{value.Null(), `10 - 4 - 3 == 3 and 2 ** -1 == 0.5 and +size == 5 and -size == -5 and 64 * KiB == 65536`},
		{value.Int(math.MaxInt64), `value + 1 == 9223372036854775808 and value + 1 > value and value * 2 == 18446744073709551614 and -value - 1 == -9223372036854775808`},
		{value.Int(math.MinInt64), `value - 1 < value and -value == 9223372036854775808 and value / -1 > 0 and value % -1 == 0 and value * -1 == 9223372036854775808 and abs(value) == 9223372036854775808`},
		{value.Int(0), `0 ** value == 1 and (-1) ** 1000000000001 == -1 and (-1) ** 1000000000000 == 1 and 0 ** 99999999999 == 0 and 1 ** 99999999999 == 1`},
		{value.Int(math.MaxInt64), `value != 9223372036854775806 and value == 9223372036854775807 and value < 9223372036854775808.0 and value != 9223372036854775808.0`},
		{value.Uint(math.MaxUint64), `value == 18446744073709551615 and value > 18446744073709551614 and value != 18446744073709551616.0 and value < 18446744073709551616 and value % 10 == 5`},
		{bigOf("1180591620717411303424"), `value == 2 ** 70 and value == "1180591620717411303424" and value > 18446744073709551615 and value == 1180591620717411303424.0 and value - 2 ** 70 == 0`},
		{value.Null(), `1 / 0 > 1e308 and 0 / 0 != 0 / 0 and not (0 / 0 < 1) and not (0 / 0 >= 1)`},
		{value.Null(), `"a" + "b" == "ab"`},
		// Floats and decimals.
		{float64Of(1.25), `value > 1.2 and value == 5 / 4 and 1 < value < 2 and value + 1 == 2.25`},
		{float32Of(1.5), `value == 1.5 and value in [1.5]`},
		{float64Of(math.NaN()), `value != value and not (value < 1) and not (value > 1) and value not in 1..2`},
		{float64Of(math.Inf(1)), `value > 2 ** 2000 and value > 18446744073709551615 and -value < -5`},
		{decimalOf(10, 2), `value == 0.1 and value == 0.10 and value < 0.10000000000000000001 and value > 0.09999999999999999999 and value + value + value == 0.3 and value * 10 == 1 and value - 0.1 == 0`},
		{decimalOf(1, math.MaxInt32), `value > 0 and value < 1e-300 and value != 0 and int(value) == 0 and value not in 0..1`},
		{decimalOf(1, math.MinInt32), `value > 1e308 and value > 2 ** 4000 and -value < 5`},
		{decimalOf(12345678901234567, 2), `value == 123456789012345.67 and value > 123456789012345.66 and value < 123456789012345.68`},
		{decimalOf(300, 2), `value == 3 and value in 1..5 and value in [3] and value == 3.0 and value == "3.00" and -value == -3`},
		{decimalOf(350, 2), `value not in 1..5 and int(value) == 3 and floor(value) == 3 and ceil(value) == 4 and round(value) == 4`},
		// Comparison, chains, texts.
		{value.Int(3), `1 < value <= 3 and not (1 < value < 3) and 5 > value > 2 and 1 <= 1 <= 1 < 2`},
		{text("b"), `value > "a" and "a" < value < "c" and value <= "b" and value != "B" and value != 5 and not (value == 5)`},
		{value.Null(), `state startsWith "off" and state endsWith "sets" and state contains "fse" and state matches "^o.*s$" and state not contains "x" and state not startsWith "x" and state not endsWith "x" and state not matches "^x"`},
		{value.Null(), `not (value contains "x") and value not contains "x" and not (nil matches "x")`},
		{value.Instant(1704067200, 500_000_000), `value == "2024-01-01T00:00:00.5Z" and value > "2024-01-01T00:00:00Z" and value < "2024-01-01T01:00:00.6+01:00" and value startsWith "2024-" and value > "2023"`},
		{value.Date(2024, 2, 29), `value == "2024-02-29" and value >= "2024-02" and value < "2024-03-01"`},
		// Logic: the right side is not evaluated if the left one decides.
		{value.Null(), `true || value > 1`}, {value.Null(), `not (false && value > 1)`}, {value.Null(), `flag or false and false`}, {value.Null(), `!false and not false`},
		{value.Null(), `value == nil or value > 1 or flag`}, {value.Null(), `size > 3 ? flag : false`}, {value.Null(), `false ?: flag`}, {value.Null(), `(size > 9 ? 1 : size > 4 ? 2 : 3) == 2`},
		{value.Null(), `(value ?? 3) == 3 and (value ?? key ?? 4) == 4 and 1 + value ?? 2 == 3`},
		// Membership.
		{value.Int(8), `value in [7, 8] and value not in [1] and value in 1..8 and not (value in 1..7) and value in [7.5, 8.0] and value in (5..3 == [] ? [8] : [])`},
		{text("b"), `value in ["a", "b"] and value not in ["c", 1]`},
		{byName, `"a" in value and "z" not in value and value.a == 1 and value["b c"] == 2 and value.z == nil and len(value) == 2 and keys(value) == ["a", "b c"] and values(value) == [1, 2]`},
		{byNumber, `7 in value and 8 not in value and value[0] == [7, "x"] and value[-1][1] == "y" and any(value, #[0] == 9 and #[1] == "y")`},
		{order, `"id" in value and "nope" not in value and value.id == 7 and value["name"] == "Ada" and value?.nope == nil and value.items[1].n == 5 and value.items[-1].sku == "b"`},
		{order, `any(value.items, {.n > 4}) and all(value.items, .n > 1) and none(value.items, {#.n > 5}) and one(value.items, .n == 2) and count(value.items, {.n > 1}) == 2 and count([true, false, true]) == 2`},
		{order, `filter(value.items, .n > 4)[0].sku == "b" and find(value.items, .n > 9) == nil and map(value.items, .n) == [2, 5] and sum(value.items, .n) == 7 and sum([0.5, 1]) == 1.5`},
		{order, `value.items | filter({.n > 4}) | len() == 1`},
		{order, `any(value.items, {any([1, 2], {# == 2}) and .n == 5})`},
		{value.Null(), `value?.a.b[3] == nil and value?.[0] == nil`},
		{record("left", value.Int(1)), `value.left == 1 and value.right == nil`},
		{record("a", value.Int(1)).WithClass("org.Sub"), `value.b == nil and value["@class"] == "org.Sub"`},
		{ints(1, 2, 3, 4, 5), `value[0] == 1 and value[-1] == 5 and value[1:3] == [2, 3] and value[:2] == [1, 2] and value[3:] == [4, 5] and value[:] == 1..5 and value[1:-1] == [2, 3, 4] and value[4:2] == [] and value[2:99] == [3, 4, 5]`},
		{text("héllo"), `value[1:3] == "él" and len(value) == 5 and upper(value) == "HÉLLO" and lower("ÀB") == "àb" and trim("  a ") == "a"`},
		// Functions.
		{value.Null(), `int("42") == 42 and int(-3.9) == -3 and int("99999999999999999999") == 99999999999999999999 and float("1.5") == 1.5 and float(3) == 3.0 and string(42) == "42" and string([1, "a"]) == '[1,"a"]'`},
		{value.Null(), `abs(-5) == 5 and abs(-0.5) == 0.5 and min(3, 1, 2) == 1 and max([3, 9], 4) == 9 and max(1, 1.5) == 1.5 and min([]) == nil and min("b", "a") == "a"`},
		{value.Null(), `floor(1.5) == 1 and ceil(1.2) == 2 and round(1.5) == 2 and floor(7) == 7 and first([1, 2]) == 1 and last([1, 2]) == 2 and first([]) == nil`},
		{value.Null(), `type(1) == "int" and type(1.5) == "float" and type("a") == "string" and type(nil) == "nil" and type([]) == "array" and type(true) == "bool"`},
		{order, `type(value) == "map" and type(value.items) == "array"`},
		// Lists, records and maps are equal by their parts.
		{listOf(value.Int(1), text("a")), `value == [1.0, "a"] and value != [1] and value != [1, "b"] and value != nil and value != "a"`},
		{value.Map([]value.Value{text("x"), value.Int(1), text("y"), value.Int(2)}), `value == key`},
	} {
		k := value.Null()
		if tt.value.Kind() == value.KindMap {
			k = value.Map([]value.Value{text("y"), value.Int(2), text("x"), value.Int(1)})
		}
		p, err := expression.Compile(tt.text, names)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if ok, err := p.Eval(vars(tt.value, k)); err != nil || !ok {
			t.Errorf("%s, with the value %v: %v, %v", tt.text, tt.value, ok, err)
		}
		if again, err := expression.Compile(p.String(), names); err != nil || again.String() != p.String() {
			t.Errorf("%s: printed %s, which is %v, %v", tt.text, p, again, err)
		}
	}
}

// TestPrecedence: how operators bind.
func TestPrecedence(t *testing.T) {
	for text, want := range map[string]string{
		`1 + 2 * 3 ** 2 > 4 and flag or not flag`: `((((1 + (2 * (3 ** 2))) > 4) and flag) or (not flag))`,
		`flag or flag and flag or flag`:           `(flag or (flag and flag) or flag)`,
		`-size ** 2 == 1..2`:                      ``,
		`-value ** 2 == 1`:                        `((- (value ** 2)) == 1)`,
		`not flag == flag`:                        `((not flag) == flag)`,
		`value in 1..size + 1`:                    `(value in (1 .. (size + 1)))`,
		`value not in [1] and flag`:               `((value not in [1]) and flag)`,
		`value ?? 1 + 2 == 3`:                     ``,
		`2 - 1 - 1 == 0`:                          `(((2 - 1) - 1) == 0)`,
		`value?.a["b"][1:].c | len() == 1`:        `(len(value?.["a"]["b"][1:]["c"]) == 1)`,
		`any(value, .a > #.b)`:                    `any(value, {(#["a"] > #["b"])})`,
		`flag ? flag : flag ? flag : flag`:        `(flag ? flag : (flag ? flag : flag))`,
		`1 < size <= 3`:                           `(1 < size <= 3)`,
		`0.1 < 0.12345678901234567890 < 1e0`:      `(0.1 < 12345678901234567890e-20 < 1.0)`,
		`state == b"\xff" || state == "\xff"`:     `((state == b"\xff") or (state == "ÿ"))`,
	} {
		p, err := expression.Compile(text, names)
		if want == "" {
			if err == nil {
				t.Errorf("%s: %v, expected an error", text, p)
			}
			continue
		}
		if err != nil || p.String() != want {
			t.Errorf("%s: %v, %v", text, p, err)
		}
	}
}

// TestCompileErrors: what is refused before anything is read, and where it is.
func TestCompileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "unexpected end of the expression (column 1)",
		"size >":                  "unexpected end of the expression (column 7)",
		"size > )":                `unexpected ")" (column 8)`,
		"size":                    "the expression is an integer, expected true or false (column 1)",
		"weight > 3":              "unknown name weight (column 1)",
		"flag and\n  wight > 3":   "unknown name wight (line 2, column 3)",
		`state == "ü" and wight`:  "unknown name wight (column 18)",
		"size = 3":                `unexpected "="; to compare, write == (column 6)`,
		`size == "a"`:             "cannot compare an integer with a string (column 6)",
		`size < "a"`:              "cannot compare an integer with a string (column 6)",
		`1 < size < "a"`:          "cannot compare an integer with a string (column 10)",
		"size and flag":           "and needs a boolean, found an integer (column 1)",
		"not size":                "not needs a boolean, found an integer (column 5)",
		"flag + 1 > 2":            "+ cannot be calculated of a boolean and an integer (column 6)",
		"state % 2 == 1":          "% needs integers, found a string and an integer (column 7)",
		"1.5 % 2 == 1":            "% needs integers, found a float and an integer (column 5)",
		`"a" in state`:            "in needs a list, a map or a record after it, found a string; for texts, write b contains a (column 5)",
		"size contains 1":         "contains needs two strings, found an integer and an integer (column 6)",
		`state matches "("`:       "error parsing regexp: missing closing ): `(` (column 15)",
		"size.x == 1":             "cannot look into an integer (column 6)",
		`[1]["a"] == 1`:           "the index of a list is an integer, found a string (column 5)",
		"lower(size) == 1":        "lower needs a string, found an integer (column 7)",
		"len() == 1":              "len has too few arguments: expected len(value) (column 1)",
		"len(1, 2) == 1":          "len has too many arguments: expected len(value) (column 1)",
		"any(value) == 1":         "any has too few arguments: expected any(list, {condition}) (column 1)",
		"any(value, 5)":           "any needs a boolean, found an integer (column 12)",
		"groupBy(value, #) == 1":  "function groupBy is not supported (column 1)",
		"value.foo() == 1":        "methods are not supported: foo() (column 7)",
		"let x = 1; x == 1":       "variables with let are not supported (column 1)",
		"flag; flag":              "sequences with ; are not supported (column 5)",
		"if flag {true}":          "if is not supported; write a ? b : c (column 1)",
		"$env.size > 1":           "$env is not supported (column 1)",
		`key in {"a": 1}`:         "map literals are not supported; a list is [1, 2] (column 8)",
		"# > 5":                   `"#" is the element of a predicate, such as in any(value, {# > 5}) (column 1)`,
		"any(value, #index > 1)":  "#index is not supported (column 12)",
		"::len(value) == 1":       ":: is not supported (column 1)",
		"value ?? 1 > 0":          "?? and > need parentheses: (a ?? b) > c (column 12)",
		`state == "abc`:           `text without a closing " (column 10)`,
		`state == "\q"`:           `unknown escape \q in a text; write \\ for a backslash (column 11)`,
		"size > 1x":               `"1x" is not a number (column 8)`,
		"size > 0xg":              `"0xg" is not a number (column 8)`,
		"size > 1e999":            `"1e999" is not a number (column 8)`,
		"flag @ flag":             `unexpected character "@" (column 6)`,
		"flag /* x":               "comment without a closing */ (column 6)",
		"flag not flag":           `unexpected "flag" (column 10)`,
		"size ? flag : flag":      "? needs a boolean before it, found an integer (column 6)",
		"flag ? 1 : 2":            "the expression is an integer, expected true or false (column 6)",
		"size in 1.5..2":          ".. needs two integers, found a float and an integer (column 12)",
		"value[1:\"a\"] == 1":     "a slice needs an integer, found a string (column 9)",
		"nil < 1":                 "cannot compare null with an integer (column 5)",
		"(flag":                   `unexpected end of the expression, expected ")" (column 6)`,
		strings.Repeat("(", 5000): "the expression is nested more than 1000 times (column 1001)",
		strings.Repeat("-", 5000): "the expression is nested more than 1000 times (column 1001)",
	} {
		_, err := expression.Compile(text, names)
		if err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, expected %s", text, err, want)
		}
	}
	for _, text := range []string{strings.Repeat("1+", 5000) + "1 > 0", strings.Repeat("not ", 400) + "flag", strings.Repeat(" ", 2<<20), "value" + strings.Repeat("|len()", 2000) + " > 1"} {
		if _, err := expression.Compile(text, names); err == nil {
			t.Errorf("%.20s… compiles", text)
		}
	}
	// What is long but flat is not refused.
	for _, text := range []string{strings.Repeat("flag or ", 50_000) + "flag", "size in [" + strings.Repeat("1, ", 100_000) + "5]", "value == nil or value" + strings.Repeat("[0]", 5000) + " == 1"} {
		p, err := expression.Compile(text, names)
		if err != nil {
			t.Errorf("%.20s…: %v", text, err)
			continue
		}
		if ok, err := p.Eval(vars(value.Null(), value.Null())); err != nil || !ok {
			t.Errorf("%.20s…: %v, %v", text, ok, err)
		}
	}
}

// TestUnknown: an error has the names that could have been meant.
func TestUnknown(t *testing.T) {
	_, err := expression.Compile("sise > 1", names)
	e, ok := err.(*expression.Error)
	if !ok || e.Unknown != "sise" || !slices.Contains(e.Known, "size") || e.Field || e.Line != 1 || e.Column != 1 {
		t.Errorf("%#v", err)
	}
	_, err = expression.Compile("lenn(value) > 1", names)
	if e, ok := err.(*expression.Error); !ok || e.Unknown != "lenn" || !slices.Contains(e.Known, "len") {
		t.Errorf("%#v", err)
	}
}

// TestEvalErrors: values that an expression does not fit.
func TestEvalErrors(t *testing.T) {
	object := record("name", text("x"), "id", value.Int(1))
	byName, byNumber := value.Map([]value.Value{text("a"), value.Int(1)}), value.Map([]value.Value{value.Int(1), value.Int(1)})
	for _, tt := range []struct {
		value      value.Value
		text, want string
	}{
		{text("six"), `value > 5`, "cannot compare a string with an integer (column 7)"},
		{value.Null(), `value > 5`, "cannot compare null with an integer (column 7)"},
		{value.Int(2), `1 < value < key`, "cannot compare an integer with null (column 11)"},
		{value.Int(1), `value`, "the expression is an integer, expected true or false (column 1)"},
		{value.Int(1), `flag and value`, "and needs a boolean, found an integer (column 10)"},
		{value.Int(1), `not value`, "not needs a boolean, found an integer (column 5)"},
		{object, `value.nope == 1`, "no field nope; available: id, name (column 7)"},
		{object, `not (value["nope"] == nil)`, "no field nope; available: id, name (column 12)"},
		{object, `any([value], .nope == nil)`, "no field nope; available: id, name (column 15)"},
		{object, `value[0] == 1`, "cannot look for 0 in a record (column 7)"},
		{value.Null(), `value.a == 1`, "cannot look for a in null; ?. in place of . keeps null (column 7)"},
		{text("secret"), `key[value] == 1`, "cannot look for a key in null; ?. in place of . keeps null (column 5)"},
		{value.Int(1), `value.a == 1`, "cannot look for a in an integer (column 7)"},
		{ints(1), `value[1] == 1`, "index 1 of a list of 1 elements (column 7)"},
		{ints(1), `value[-2] == 1`, "index -2 of a list of 1 elements (column 7)"},
		{ints(1), `value.a == 1`, "cannot look for a in a list (column 7)"},
		{byName, `value[0] == 1`, "the keys of this map are strings, found an integer (column 7)"},
		{byNumber, `value.a == 1`, "a string is not a key of this map, whose first key is an integer (column 7)"},
		{value.Int(1), `value contains "a"`, "contains needs two strings, found an integer and a string (column 7)"},
		{ints(1), `value contains "a"`, "contains needs two strings, found a list and a string; for elements and keys, write b in a (column 7)"},
		{text("a"), `"a" in value`, "in needs a list, a map or a record after it, found a string (column 5)"},
		{text("("), `state matches value`, "the string after matches is not a regular expression (column 15)"},
		{value.Int(0), `5 % value == 1`, "% by zero (column 3)"},
		{float64Of(1), `5 % value == 1`, "% needs integers, found an integer and a double (column 3)"},
		{text("a"), `value + 1 == 1`, "+ cannot be calculated of a string and an integer (column 7)"},
		{text("a"), `-value == 1`, "- needs a number, found a string (column 1)"},
		{text("a"), `int(value) == 1`, "int of a string that is not an integer (column 1)"},
		{float64Of(math.NaN()), `int(value) == 1`, "int of NaN or of an infinity (column 1)"},
		{value.Int(1), `len(value) == 1`, "len needs a string, a list or a map, found an integer (column 1)"},
		{value.Int(1), `any(value, {#})`, "any needs a list or a map, found an integer (column 1)"},
		{ints(1), `any(value, {#})`, "any needs a boolean, found an integer (column 13)"},
		{ints(1), `flag ? value : flag`, "the expression is a list, expected true or false (column 6)"},
		// Work and memory are bounded.
		{value.Int(1), `10 ** 10 ** 10 > value`, "the result is too large to be calculated exactly (column 4)"},
		{value.Int(1 << 62), `value * value ** 40 * value ** 40 > 1`, "the result is too large to be calculated exactly (column 21)"},
		{value.Int(1 << 40), `any(1..value, {# < 0})`, "the expression makes lists of more than 262144 elements (column 6)"},
		{value.Int(200000), `any(map(1..1000, {map(1..value, #)}), {# == nil})`, "the expression makes lists of more than 262144 elements (column 19)"},
		{decimalOf(1, math.MinInt32), `int(value) > 1`, "the result is too large to be calculated exactly (column 1)"},
		{decimalOf(1, math.MinInt32), `value + 1 > 1`, "the result is too large to be calculated exactly (column 7)"},
		{text(strings.Repeat("a", 1<<25)), `value + value + value == ""`, "the expression makes a text of more than 67108864 bytes (column 15)"},
	} {
		p, err := expression.Compile(tt.text, names)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if ok, err := p.Eval(vars(tt.value, value.Null())); err == nil || err.Error() != tt.want {
			t.Errorf("%s of %.20v: %v, %v, expected %s", tt.text, tt.value, ok, err, tt.want)
		}
	}
	// Lists that share their parts are small, and take long to compare.
	shared := "[value, value]"
	for range 40 {
		shared = "map([" + shared + "], [#, #])"
	}
	p, err := expression.Compile(shared+" == "+shared, names)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Eval(vars(value.Int(1), value.Null())); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Error(err)
	}
}

// TestNull: an expression that is null is not true; an operand that is null is an error.
func TestNull(t *testing.T) {
	for text, wrong := range map[string]bool{`value`: false, `value?.active`: false, `value ?? key`: false, `not value`: true, `value and flag`: true, `value ? flag : flag`: true} {
		p, err := expression.Compile(text, names)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := p.Eval(vars(value.Null(), value.Null())); ok || (err != nil) != wrong {
			t.Errorf("%s: %v, %v", text, ok, err)
		}
	}
}

// TestOpenRecords: a field that such a record does not have is null.
func TestOpenRecords(t *testing.T) {
	p, err := expression.Compile(`value.nope == nil`, names)
	if err != nil {
		t.Fatal(err)
	}
	v := vars(record("a", value.Int(1)), value.Null())
	if _, err := p.Eval(v); err == nil {
		t.Error("no error")
	}
	v.OpenRecords = true
	if ok, err := p.Eval(v); err != nil || !ok {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestUses: the names that an expression looks at, also where it does not get there.
func TestUses(t *testing.T) {
	p, err := expression.Compile(`flag or any([1], {# == key}) or KiB > 5`, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, false, true, false, true, true} {
		if p.Uses(i) != want {
			t.Errorf("%s: %v", names[i].Name, p.Uses(i))
		}
	}
}

// TestNoAllocation: what is evaluated for each element allocates nothing.
func TestNoAllocation(t *testing.T) {
	for _, text := range []string{`size > 3 and value % 2 == 0`, `state == "offsets"`, `value in [1, 2, 6]`, `value in 1..9`, `1 < value < 9.5`, `state contains "x" or flag`, `value == 6 ? flag : false`} {
		p, err := expression.Compile(text, names)
		if err != nil {
			t.Fatal(err)
		}
		v := vars(value.Int(6), value.Null())
		if n := testing.AllocsPerRun(100, func() {
			if ok, err := p.Eval(v); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// FuzzParse: no text makes the compiler or the evaluation panic, and what compiles
// prints as what compiles to the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`state == "offsets" and value[1] % 2 == 0 or not flag`, `any(value, {.a?.b[1:-2] > #[0]}) ?: flag`, `value | map(# ** 2) | sum() >= 1.5e3`,
		`1 < size <= 0x1F and key not in ['a', b"\xff", nil]`, "`raw` matches \"^[a-z]+$\" // comment", `(value ?? 0.12345678901234567890) + 18446744073709551616 != -1 ? true : 1..3 == [1, 2, 3]`,
		`string(value) startsWith upper(trim(state)) && len(value) in 1..KiB`,
	} {
		f.Add(text)
	}
	values := []value.Value{value.Null(), value.Int(-3), text("a"), ints(1, 2), decimalOf(5, math.MaxInt32), float64Of(math.NaN()), record("a", ints(1)), value.Map([]value.Value{value.Int(1), text("x")})}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := expression.Compile(text, names)
		if err != nil {
			if e, ok := err.(*expression.Error); !ok || e.Line < 1 || e.Column < 1 || e.Text == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		printed := p.String()
		if len(printed) > 1<<20 {
			return
		}
		again, err := expression.Compile(printed, names)
		if err != nil || again.String() != printed {
			t.Fatalf("%q printed %q, which is %v, %v", text, printed, again, err)
		}
		for _, v := range values {
			ok, err := p.Eval(vars(v, value.Null()))
			ok2, err2 := again.Eval(vars(v, value.Null()))
			if ok != ok2 || (err == nil) != (err2 == nil) {
				t.Fatalf("%q: %v, %v; printed as %q: %v, %v", text, ok, err, printed, ok2, err2)
			}
		}
	})
}
