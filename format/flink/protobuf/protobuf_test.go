package protobuf_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/protobuf"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

const order = `file { name: "shop.proto" package: "shop" syntax: "proto3"
  enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "PAID" number: 1 } }
  message_type { name: "Order"
    field { name: "id" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT64 }
    field { name: "state" number: 2 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".shop.State" }
    field { name: "tags" number: 3 label: LABEL_REPEATED type: TYPE_STRING }
    field { name: "prices" number: 4 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".shop.Order.PricesEntry" }
    field { name: "parent" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".shop.Order" }
    field { name: "raw" number: 6 label: LABEL_OPTIONAL type: TYPE_BYTES }
    field { name: "delta" number: 7 label: LABEL_OPTIONAL type: TYPE_SINT32 }
    field { name: "score" number: 8 label: LABEL_OPTIONAL type: TYPE_FLOAT }
    nested_type { name: "PricesEntry" options { map_entry: true }
      field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
      field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 } } } }`

func descriptorSet(t testing.TB) ([]byte, *descriptorpb.FileDescriptorSet) {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	if err := prototext.Unmarshal([]byte(order), &set); err != nil {
		t.Fatal(err)
	}
	p, err := proto.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	return p, &set
}

func orders(t testing.TB) value.Codec {
	t.Helper()
	set, _ := descriptorSet(t)
	c, err := protobuf.NewCodec(set, "shop.Order")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMessages reads messages that the library wrote from their text.
func TestMessages(t *testing.T) {
	_, set := descriptorSet(t)
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName("shop.Order")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ text, json string }{
		{``, `{"id":0,"state":"NEW","tags":[],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0}`},
		{`id: 18446744073709551615 state: PAID tags: "a" tags: "é" prices { key: "b" value: 2 } prices { key: "a" value: -1 } raw: "\000\377" delta: -7 score: 1.5 parent { id: 3 }`,
			`{"id":18446744073709551615,"state":"PAID","tags":["a","é"],"prices":[["a",-1],["b",2]],"parent":{"id":3,"state":"NEW","tags":[],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0},"raw":{"base64":"AP8="},"delta":-7,"score":1.5}`},
		{`state: 9`, `{"id":0,"state":9,"tags":[],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0}`},
	} {
		m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
		if err := prototext.Unmarshal([]byte(x.text), m); err != nil {
			t.Fatal(err)
		}
		p, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		v, err := testenv.ReadBack(t, orders(t), p)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.json {
			t.Errorf("%s: %s, %v", x.text, got, err)
		}
	}
}

func TestNotMessages(t *testing.T) {
	c := orders(t)
	for _, x := range []struct {
		bytes string
		kind  error
		want  string
	}{
		{"\x08", format.ErrCorrupt, "not a message shop.Order"},
		{"\xf8\x01\x05", format.ErrUnsupported, "field 31 is not in the descriptor of message shop.Order"},
		{"\x1a\x01\xff", format.ErrCorrupt, "UTF-8"},
		{strings.Repeat("\x2a\x7f", 200), format.ErrCorrupt, "not a message"},
	} {
		if _, _, err := c.Read([]byte(x.bytes)); !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v", x.bytes, err)
		}
	}
	set, _ := descriptorSet(t)
	for _, x := range []struct {
		set           []byte
		message, want string
	}{
		{[]byte("\x08"), "shop.Order", "not a descriptor set"},
		{set, "shop.Item", `no message "shop.Item"`},
		{set, "shop.State", "not a message"},
	} {
		if _, err := protobuf.NewCodec(x.set, x.message); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
	for _, x := range []struct{ json, want string }{
		{`{"id":1}`, "is missing"},
		{`{"id":-1,"state":"NEW","tags":[],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0}`, "id: -1 does not fit into uint64"},
		{`{"id":1,"state":"GONE","tags":[],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0}`, `no constant "GONE"`},
		{`{"id":1,"state":"NEW","tags":[7],"prices":[],"parent":null,"raw":{"base64":""},"delta":0,"score":0}`, ".tags[0]: expected a string"},
	} {
		if _, err := value.FromJSON(c, []byte(x.json)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.json, err, x.want)
		}
	}
}

// TestWellKnown: types that refer to each other have a codec.
func TestWellKnown(t *testing.T) {
	file := protodesc.ToFileDescriptorProto(structpb.File_google_protobuf_struct_proto)
	p, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := protobuf.NewCodec(p, "google.protobuf.Value")
	if err != nil {
		t.Fatal(err)
	}
	m, err := structpb.NewValue([]any{"a", 1.0, nil, map[string]any{"k": true}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	v, err := testenv.ReadBack(t, c, data)
	if err != nil || !strings.Contains(v.String(), `"string_value":"a"`) {
		t.Errorf("%v, %v", v, err)
	}
}

// FuzzMessages: what is read is written as a message that is read as the same value.
func FuzzMessages(f *testing.F) {
	c := orders(f)
	for _, s := range []string{"", "\x08\x07", "\x1a\x01a\x22\x05\x0a\x01k\x10\x02", "\x2a\x02\x08\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		v, n, err := c.Read(p)
		if err != nil {
			return
		}
		q, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := c.Read(q)
		if n != len(p) || err != nil || again.String() != v.String() {
			t.Errorf("%v is written as %v, %v", v, again, err)
		}
		if r, err := c.Append(nil, again); err != nil || !slices.Equal(q, r) {
			t.Errorf("written as %x, then %x, %v", q, r, err)
		}
	})
}
