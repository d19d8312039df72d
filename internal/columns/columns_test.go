package columns

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

var (
	long = &types.Type{Kind: types.TypeInt, Bits: 64}
	text = &types.Type{Kind: types.TypeString, Null: true}
)

func listOf(t *types.Type) *types.Type {
	return &types.Type{Kind: types.TypeList, Parts: []*types.Type{t}}
}

// write writes a file with one column and opens it.
func write(t *testing.T, typ *types.Type, values ...value.Value) (*parquet.File, error) {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, []Column{{Name: "c", Type: typ}})
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		if err := w.Row([]value.Value{v}); err != nil {
			if again := w.Row([]value.Value{v}); again != err || w.Close() != err {
				t.Errorf("after %v: %v", err, again)
			}
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
}

// column returns how the file declares its column, on one line.
func declared(f *parquet.File) string {
	return strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimPrefix(f.Schema().String(), "message spt {"), "}")), " ")
}

// Expected values are computed by hand from the specification of Parquet (LogicalTypes.md).
func TestLeaves(t *testing.T) {
	decimal := func(p, s int32) *types.Type { return &types.Type{Kind: types.TypeDecimal, Precision: p, Scale: s} }
	moment := func(k types.TypeKind, p int32) *types.Type { return &types.Type{Kind: k, Precision: p} }
	tests := []struct {
		typ      *types.Type
		v        value.Value
		declared string
		stored   string
	}{
		{&types.Type{Kind: types.TypeBool}, value.Bool(true), "boolean c", "true"},
		{&types.Type{Kind: types.TypeInt, Bits: 8}, value.Int(-128), "int32 c (INT(8,true))", "-128"},
		{&types.Type{Kind: types.TypeInt, Bits: 32}, value.Int(math.MaxInt32), "int32 c (INT(32,true))", "2147483647"},
		{long, value.Int(math.MinInt64), "int64 c (INT(64,true))", "-9223372036854775808"},
		{&types.Type{Kind: types.TypeFloat, Bits: 32}, value.Float32(0x3fc00000), "float c", "1.5"},
		{&types.Type{Kind: types.TypeFloat, Bits: 64}, value.Float64(0x3ff8000000000000), "double c", "1.5"},
		{&types.Type{Kind: types.TypeBigInt}, value.BigInt([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0}), "binary c (STRING)", "18446744073709551616"},
		{decimal(5, 2), value.Decimal([]byte{0x30, 0x39}, 2), "int32 c (DECIMAL(5,2))", "12345"},
		{decimal(5, 2), value.Decimal([]byte{0x7b}, 0), "int32 c (DECIMAL(5,2))", "12300"},
		{decimal(18, 0), value.Decimal([]byte{0xff}, 0), "int64 c (DECIMAL(18,0))", "-1"},
		{decimal(38, 1), value.Decimal([]byte{0xfe}, 1), "fixed_len_byte_array(16) c (DECIMAL(38,1))", strings.Repeat("\xff", 15) + "\xfe"},
		{decimal(39, 1), value.Decimal([]byte{0xfe}, 1), "binary c (STRING)", "-0.2"},
		{decimal(0, 0), value.Decimal([]byte{0x7b}, 2), "binary c (STRING)", "1.23"},
		{text, value.String("a\xed\xa0\x80b"), "binary c (STRING)", "a\ufffdb"},
		{&types.Type{Kind: types.TypeBytes}, value.Bytes([]byte{0xff, 0}), "binary c", "\xff\x00"},
		{&types.Type{Kind: types.TypeNotDecoded}, value.Bytes([]byte{1}), "binary c", "\x01"},
		{moment(types.TypeInstant, 3), value.Instant(-1, 5e6), "int64 c (TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS))", "-995"},
		{moment(types.TypeInstant, 6), value.Instant(1, 5e3), "int64 c (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))", "1000005"},
		{moment(types.TypeDateTime, 9), value.DateTime(value.Civil{Year: 1970, Month: 1, Day: 2, Nano: 7}), "int64 c (TIMESTAMP(isAdjustedToUTC=false,unit=NANOS))", "86400000000007"},
		{moment(types.TypeDate, 0), value.Date(2000, 1, 1), "int32 c (DATE)", "10957"},
		{moment(types.TypeDate, 0), value.Date(1969, 12, 31), "int32 c (DATE)", "-1"},
		{moment(types.TypeTimeOfDay, 3), value.TimeOfDay(1, 0, 0, 1e6), "int32 c (TIME(isAdjustedToUTC=false,unit=MILLIS))", "3600001"},
		{moment(types.TypeTimeOfDay, 9), value.TimeOfDay(0, 0, 1, 1), "int64 c (TIME(isAdjustedToUTC=false,unit=NANOS))", "1000000001"},
		{&types.Type{Kind: types.TypeEnum, Names: []string{"A"}}, value.String("A"), "binary c (STRING)", "A"},
		{&types.Type{Kind: types.TypeAny}, value.Bytes([]byte{1}).WithClass("a.B"), "binary c (JSON)", `{"@class":"a.B","@value":{"base64":"AQ=="}}`},
		{&types.Type{Kind: types.TypeChoice}, value.List([]value.Value{value.Int(1)}), "binary c (JSON)", `[1]`},
		{&types.Type{Kind: types.TypeOptional, Parts: []*types.Type{long}}, value.Int(1), "int64 c (INT(64,true))", "1"},
		{&types.Type{Kind: types.TypeTuple}, value.List(nil), "binary c (JSON)", `[]`}, // Parquet has no empty group
		{nil, value.String(`{"a":1}`), "binary c (JSON)", `{"a":1}`},
	}
	for _, tt := range tests {
		f, err := write(t, tt.typ, tt.v, value.Null())
		if err != nil {
			t.Errorf("%s: %v", tt.declared, err)
			continue
		}
		if got := declared(f); got != "optional "+tt.declared+";" {
			t.Errorf("declared as %s, expected %s", got, tt.declared)
		}
		rows := f.RowGroups()[0].Rows()
		got := make([]parquet.Row, 2)
		if n, _ := rows.ReadRows(got); n != 2 || got[0][0].String() != tt.stored || !got[1][0].IsNull() {
			t.Errorf("%s: %d rows, %q, expected %q and null", tt.declared, n, got, tt.stored)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLevels: the levels of a map of records with lists are those of Dremel's rules,
// worked out by hand.
func TestLevels(t *testing.T) {
	record := &types.Type{Kind: types.TypeRecord, Names: []string{"z", "a"}, Parts: []*types.Type{long, listOf(text)}}
	shape := &value.Shape{Names: record.Names}
	one := value.Record(shape, []value.Value{value.Int(1), value.List([]value.Value{value.String("x"), value.Null()})})
	two := value.Record(shape, []value.Value{value.Null(), value.List(nil)})
	f, err := write(t, &types.Type{Kind: types.TypeMap, Parts: []*types.Type{text, record}},
		value.Map([]value.Value{value.String("k"), one, value.String("l"), two, value.String("m"), value.Null()}), value.Null(), value.Map(nil))
	if err != nil {
		t.Fatal(err)
	}
	const want = "optional group c (MAP) { repeated group key_value { required binary key (STRING); optional group value { optional int64 z (INT(64,true)); optional group a (LIST) { repeated group list { optional binary element (STRING); } } } } }"
	if got := declared(f); got != want {
		t.Errorf("declared as %s, expected %s", got, want)
	}
	rows := make([]parquet.Row, 3)
	r := f.RowGroups()[0].Rows()
	defer r.Close() //nolint:errcheck // it was read
	if n, _ := r.ReadRows(rows); n != 3 {
		t.Fatalf("%d rows", n)
	}
	for i, want := range []string{
		"0 k 0/2, 0 l 1/2, 0 m 1/2, 1 1 0/4, 1 <null> 1/3, 1 <null> 1/2, 2 x 0/6, 2 <null> 2/5, 2 <null> 1/4, 2 <null> 1/2",
		"0 <null> 0/0, 1 <null> 0/0, 2 <null> 0/0",
		"0 <null> 0/1, 1 <null> 0/1, 2 <null> 0/1",
	} {
		var got []string
		for _, v := range rows[i] {
			got = append(got, fmt.Sprintf("%d %s %d/%d", v.Column(), v, v.RepetitionLevel(), v.DefinitionLevel()))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("row %d: %s, expected %s", i, text, want)
		}
	}
}

// TestRowKinds: a changed row has its kind in a column of its own.
func TestRowKinds(t *testing.T) {
	row := &types.Type{Kind: types.TypeRow, Kinds: true, Parts: []*types.Type{long}}
	fields := value.List([]value.Value{value.Int(1)})
	changed := value.Record(&value.Shape{Names: []string{"kind", "fields"}}, []value.Value{value.String("DELETE"), fields})
	f, err := write(t, row, fields, changed)
	if err != nil {
		t.Fatal(err)
	}
	if got := declared(f); got != "optional group c { optional int64 f0 (INT(64,true)); optional binary row_kind (STRING); }" {
		t.Errorf("declared as %s", got)
	}
	rows := make([]parquet.Row, 2)
	r := f.RowGroups()[0].Rows()
	defer r.Close() //nolint:errcheck // it was read
	if n, _ := r.ReadRows(rows); n != 2 || rows[0][1].String() != "INSERT" || rows[1][1].String() != "DELETE" || rows[1][0].Int64() != 1 {
		t.Errorf("%d rows: %v", n, rows)
	}
}

// TestNames: fields whose names Parquet or its readers do not tell apart get others.
func TestNames(t *testing.T) {
	record := &types.Type{Kind: types.TypeRecord, Names: []string{"a", "A", "", "b,c", "\xff"}, Parts: []*types.Type{long, long, long, long, long}}
	v := value.Record(&value.Shape{Names: record.Names}, []value.Value{value.Int(1), value.Int(2), value.Int(3), value.Int(4), value.Int(5)})
	f, err := write(t, record, v)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range f.Schema().Columns() {
		got = append(got, path[1])
	}
	if text := strings.Join(got, " "); text != "a A_2 _ b,c \ufffd" {
		t.Errorf("%q", text)
	}
	if _, err := NewWriter(&bytes.Buffer{}, []Column{{Name: "a", Type: long}, {Name: "A", Type: long}}); err == nil {
		t.Error("two columns of one name")
	}
}

// TestReferences: a record that occurs twice is a group twice; one within itself is JSON.
func TestReferences(t *testing.T) {
	address := &types.Type{Kind: types.TypeRecord, Class: "Address", Names: []string{"city"}, Parts: []*types.Type{text}}
	node := &types.Type{Kind: types.TypeRecord, Class: "Node", Names: []string{"from", "to", "next"}, Parts: []*types.Type{
		address, {Kind: types.TypeRef, Class: "Address"}, {Kind: types.TypeRef, Class: "Node"}}}
	f, err := write(t, node)
	if err != nil {
		t.Fatal(err)
	}
	const want = "optional group c { optional group from { optional binary city (STRING); } optional group to { optional binary city (STRING); } optional binary next (JSON); }"
	if got := declared(f); got != want {
		t.Errorf("declared as %s", got)
	}
	// Each record refers twice to the one before: 2^40 leaves if all were groups.
	deep := address
	for i := range 40 {
		class := fmt.Sprint("R", i)
		deep = &types.Type{Kind: types.TypeRecord, Class: class, Names: []string{"a", "b"}, Parts: []*types.Type{deep, {Kind: types.TypeRef, Class: deep.Class}}}
	}
	if _, err := write(t, deep); err != nil && !errors.Is(err, format.ErrLimit) {
		t.Error(err)
	}
}

func TestUnfit(t *testing.T) {
	shape := &value.Shape{Names: []string{"a"}}
	record := &types.Type{Kind: types.TypeRecord, Names: shape.Names, Parts: []*types.Type{{Kind: types.TypeInt, Bits: 8}}}
	for _, tt := range []struct {
		typ  *types.Type
		v    value.Value
		want string
	}{
		{record, value.Record(shape, []value.Value{value.Int(128)}), "c/a: an integer does not fit into a column of INT(8)"},
		{listOf(record), value.List([]value.Value{value.Null(), value.Int(1)}), "c/1: an integer does not fit into a column of record with 1 fields"},
		{record, value.Record(shape, []value.Value{value.Int(1)}).WithClass("a.Sub"), `a value of the class "a.Sub"`},
		{long, value.Uint(math.MaxUint64), "INT(64)"},
		{&types.Type{Kind: types.TypeDecimal, Precision: 2}, value.Decimal([]byte{100}, 0), "DECIMAL(2,0)"},
		{&types.Type{Kind: types.TypeDecimal, Precision: 2}, value.Decimal([]byte{99}, 1), "DECIMAL(2,0)"},
		{&types.Type{Kind: types.TypeInstant, Precision: 9}, value.Instant(math.MaxInt32*100, 0), "TIMESTAMP(NANOS)"},
		{&types.Type{Kind: types.TypeInstant, Precision: 3}, value.Instant(0, 1), "TIMESTAMP(MILLIS)"},
		{&types.Type{Kind: types.TypeDate}, value.Date(2001, 2, 29), "DATE"},
		{&types.Type{Kind: types.TypeTimeOfDay}, value.TimeOfDay(25, 0, 0, 0), "TIME(MILLIS)"},
		{&types.Type{Kind: types.TypeMap, Parts: []*types.Type{text, long}}, value.Map([]value.Value{value.Null(), value.Int(1)}), "null as the key of a map"},
	} {
		_, err := write(t, tt.typ, tt.v)
		if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, expected %s", err, tt.want)
		}
	}
}

// TestRowGroups: a row group ends by its bytes, whatever the number of rows.
func TestRowGroups(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, []Column{{Name: "c", Type: &types.Type{Kind: types.TypeBytes}}})
	if err != nil {
		t.Fatal(err)
	}
	w.most = 2000
	for _, size := range []int{1000, 1000, 5000, 10, 10} {
		if err := w.Row([]value.Value{value.Bytes(make([]byte, size))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var rows []int64
	for _, g := range f.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	if fmt.Sprint(rows) != "[2 1 2]" {
		t.Errorf("rows of the groups: %v", rows)
	}
}
