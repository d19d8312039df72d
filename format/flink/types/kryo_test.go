package types_test

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// kryoSnapshot is the snapshot of a Kryo serializer for a class, with registrations.
func kryoSnapshot(class string, more ...string) string {
	all := []string{entry(class, utf(class), utf(class)+i32(0))}
	return utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf(class) + optmap(append(all, more...)...) + optmap() + optmap()
}

type kryoTest struct {
	version     int
	class       string
	bytes, json string
}

// kryoTests are values that Flink 1.20 and 2.0 wrote; the conformance tests have more.
var kryoTests = []kryoTest{
	{2, "java.util.ArrayList", "57010a02020301827800090a05010a3ff800000000000008fffe06fd043f0000000700e9", `[1,"x",null,{"@class":"java.lang.Long","@value":5},true,{"@class":"java.lang.Double","@value":1.5},{"@class":"java.lang.Short","@value":-2},{"@class":"java.lang.Byte","@value":-3},{"@class":"java.lang.Float","@value":0.5},{"@class":"java.lang.Character","@value":"é"}]`},
	{5, "java.util.ArrayList", "57010b02020301827800090a05010a000000000000f83f08feff06fd040000003f07e900", `[1,"x",null,{"@class":"java.lang.Long","@value":5},true,{"@class":"java.lang.Double","@value":1.5},{"@class":"java.lang.Short","@value":-2},{"@class":"java.lang.Byte","@value":-3},{"@class":"java.lang.Float","@value":0.5},{"@class":"java.lang.Character","@value":"é"}]`},
	{2, "java.lang.Object", "01006a6176612e7574696c2e41727261794c6973f40100", `{"@class":"java.util.ArrayList","@value":[]}`},
	{5, "java.util.ArrayList", "57018502000204d804dfc508", `[1,2,300,-70000]`},
	{5, "java.util.ArrayList", "570101", `[]`},
	{5, "java.util.ArrayList", "57018300", `[null,null]`},
	{5, "java.util.ArrayList", "570183030101827800", `["x",null]`},
	{2, "java.util.ArrayList", "570103030174776963e5030303016f746865f2", `["twice",{"@class":"@reference java.lang.String","@value":1},"other"]`},
	{5, "java.util.ArrayList", "57018403000174776963e503016f746865f2", `["twice",{"@class":"@reference java.lang.String","@value":1},"other"]`},
	{2, "java.util.LinkedHashMap", "5701030301826102020301826201006a6176612e7574696c2e41727261794c6973f40101030182780000", `[["a",1],["b",{"@class":"java.util.ArrayList","@value":["x"]}],[null,null]]`},
	{5, "java.util.TreeMap", "570102000301826b020a", `[["k",5]]`},
	{2, "java.util.TreeSet", "570100020301826b0301826c", `["k","l"]`},
	{5, "java.util.TreeSet", "57018300030001826b01826c", `["k","l"]`},
	{2, "java.math.BigDecimal", "570103303406", `12.340`},
	{5, "java.math.BigInteger", "57010abd12edc4f427dfc5ec", `-1234567890123456789012`},
	{2, "java.util.Date", "5701a4f4ffffffffffffff", `"1969-12-31T23:59:58.5Z"`},
	{2, "java.sql.Timestamp", "5101f8ed8793df3104", `"2024-02-29T01:02:03.000000004Z"`},
	{2, "java.util.UUID", "5401deb7de9af1d9a2a302a1c8a1e58ea6dddcfd", `"01234567-89ab-cdef-8123-456789abcdef"`},
	{5, "java.util.UUID", "5401efcdab8967452301efcdab8967452381", `"01234567-89ab-cdef-8123-456789abcdef"`},
	{2, "java.lang.Object", "01006a6176612e74696d652e4c6f63616c4461746554696de50101001d0002d01f0101020803", `{"@class":"java.time.LocalDateTime","@value":"2024-02-29T01:02:03.000000004"}`},
	{5, "java.lang.Object", "01006a6176612e74696d652e4c6f63616c4461746554696de501e80f021d01020304", `{"@class":"java.time.LocalDateTime","@value":"2024-02-29T01:02:03.000000004"}`},
	{5, "java.lang.Object", "01006a6176612e74696d652e4c6f63616c54696de501e8", `{"@class":"java.time.LocalTime","@value":"23:00:00"}`},
	{5, "java.lang.Object", "01006a6176612e74696d652e4475726174696fee01fbffffffffffffff07", `{"@class":"java.time.Duration","seconds":-5,"nanos":7}`},
	{2, "java.lang.Object", "01005b4c6a6176612e6c616e672e537472696e67bb010301826100", `{"@class":"[Ljava.lang.String;","@value":["a",null]}`},
	{5, "java.lang.Object", "01006a6176612e7574696c2e436f6c6c656374696f6e7324456d7074794c6973f401", `{"@class":"java.util.Collections$EmptyList","@value":null}`},
	{2, "org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition", "5701d6cfec021a016162e3", `{"cachedHash":2986987,"partition":13,"topic":"abc"}`},
}

func kryoCodecOf(t testing.TB, x kryoTest) value.Codec {
	t.Helper()
	c, err := types.NewCodec(snapshot(t, kryoSnapshot(x.class)), types.Options{Kryo: x.version})
	if err != nil {
		t.Fatalf("%s: %v", x.class, err)
	}
	return c
}

// TestKryo reads values of the JDK's classes, cuts and flips them.
func TestKryo(t *testing.T) {
	for _, x := range kryoTests {
		c := kryoCodecOf(t, x)
		p, err := hex.DecodeString(x.bytes)
		if err != nil {
			t.Fatal(err)
		}
		v, err := testenv.ReadBack(t, c, p)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.json {
			t.Errorf("Kryo %d: %s, want %s, %v", x.version, got, x.json, err)
		}
		for n := range p {
			if _, _, err := c.Read(p[:n]); !value.IsShort(err) {
				t.Errorf("Kryo %d, %s cut to %d: %v", x.version, x.json, n, err)
			}
			for bit := range 8 {
				q := append([]byte(nil), p...)
				q[n] ^= 1 << bit
				if err := testenv.Agree(c, q); err != nil {
					t.Errorf("Kryo %d, %s, byte %d flipped: %v", x.version, x.json, n, err)
				}
				if v, _, err := c.Read(q); err == nil {
					if err := testenv.AgreeJSON(c, v); err != nil {
						t.Errorf("Kryo %d, %s, byte %d flipped: %v", x.version, x.json, n, err)
					}
				}
			}
		}
	}
}

// TestKryoRefuses: a serializer whose values are not decoded says why.
func TestKryoRefuses(t *testing.T) {
	for _, x := range []struct {
		snapshot string
		version  int
		why      types.Reason
	}{
		{kryoSnapshot("java.util.ArrayList"), 0, types.UnknownKryo},
		{kryoSnapshot("com.acme.Mine"), 2, types.UserKryo},
		{utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf("java.util.ArrayList") + optmap() + optmap(entry("x", utf("x"), "")) + optmap(), 2, types.UserKryo},
	} {
		_, err := types.NewCodec(snapshot(t, x.snapshot), types.Options{Kryo: x.version})
		var why *types.NotDecoded
		if !errors.As(err, &why) || why.Reason != x.why || why.Serializer != "KryoSerializer" || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%v, want %s", err, x.why)
		}
	}
	c, err := types.NewCodec(snapshot(t, kryoSnapshot("java.lang.Object", entry("P", utf("P"), utf("P")+i32(1)+utf("com.twitter.chill.protobuf.ProtobufSerializer")), entry("Q", utf("Q"), utf("Q")+i32(1)+utf("com.acme.MySerializer")))), types.Options{Kryo: 2})
	if err != nil {
		t.Fatal(err)
	}
	v, err := testenv.ReadBack(t, c, []byte{58 + 30, 1, 2, 7, 8}) // class 86 is P
	if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != `{"@class":"P","@value":{"base64":"Bwg="}}` {
		t.Errorf("a message of Protobuf: %s, %v", got, err)
	}
	for in, want := range map[string]string{
		"\x59\x01\x02": `class "Q"`, "\x01\x00Min\xe5\x01": `class "Mine"`, "\x57\x00": `class "java.lang.Object"`, "\x03\x00": "null", "\x03\x05": "object 3 of 0", "\x01\x01Min\xe5": "name 1",
	} {
		if v, _, err := c.Read([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", in, v, err, want)
		}
	}
}
