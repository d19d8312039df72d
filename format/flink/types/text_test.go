package types

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestTypeText(t *testing.T) {
	base := "org.apache.flink.api.common.typeutils.base."
	simple := func(name string) *Snapshot {
		return &Snapshot{Class: base + name + "Serializer$" + name + "SerializerSnapshot"}
	}
	of := func(class string, nested ...*Snapshot) *Snapshot { return &Snapshot{Class: class, Nested: nested} }
	long, str := simple("Long"), simple("String")
	pojo := &Snapshot{Class: "org.apache.flink.api.java.typeutils.runtime.PojoSerializerSnapshot", Type: "com.acme.Profile"}
	list := func(s *Snapshot) *Snapshot { return of(base+"ListSerializerSnapshot", s) }
	deep := long
	for range 100 {
		deep = list(deep)
	}
	void := of("org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot")
	ttl := func(s *Snapshot) *Snapshot {
		return of("org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot", long, s)
	}
	timer := of("org.apache.flink.streaming.api.operators.TimerSerializerSnapshot", str, of("org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot"))
	state := func(keyed string, mode format.Mode, name string, all ...Serializer) *StateSchema {
		return &StateSchema{Name: format.NewText(name), Keyed: keyed, Mode: mode, Serializers: all}
	}
	value := func(s *Snapshot) Serializer { return Serializer{"VALUE_SERIALIZER", s} }
	ns := func(s *Snapshot) Serializer { return Serializer{"NAMESPACE_SERIALIZER", s} }
	for _, x := range []struct {
		state     *StateSchema
		want      string
		namespace string
	}{
		{state("", format.ModeList, "x", value(long)), "long", ""},
		{state("", format.ModeBroadcast, "x", value(str), Serializer{"KEY_SERIALIZER", long}), "long → string", ""},
		{state("", format.ModeList, "x"), "", ""},
		{state("value", 0, "x", ns(void), value(pojo)), "pojo com.acme.Profile", ""},
		{state("value", 0, "x", ns(long), value(list(str))), "list<string>", "long"},
		{state("list", 0, "x", ns(void), value(list(str))), "string", ""},
		{state("list", 0, "x", ns(void), value(str)), "string", ""}, // of the second state API
		{state("map", 0, "x", ns(void), value(of(base+"MapSerializerSnapshot", str, ttl(long)))), "string → long with TTL", ""},
		{state("map", 0, "x", ns(void), value(long), Serializer{"USER_KEY_SERIALIZER", str}), "string → long", ""},
		{state(Timers, 0, "_timer_state/event_user-timers", value(timer)), "string, event time", "TimeWindow"},
		{state(Timers, 0, "_timer_state/processing_x", value(timer)), "string, processing time", "TimeWindow"},
		{state("value", 0, "x", value(of("com.acme.OrderSerializer$Snapshot"))), "com.acme.OrderSerializer", ""},
		{state("value", 0, "x", value(of("org.apache.flink.runtime.state.ttl.TtlAwareSerializerSnapshot", long))), "long", ""},
		{state("value", 0, "x", value(simple("BytePrimitiveArray"))), "bytes", ""},
		{state("value", 0, "x", value(simple("LongPrimitiveArray"))), "long[]", ""},
		{state("value", 0, "x", value(of("org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot", long, str))), "tuple2<long, string>", ""},
		{state("value", 0, "x", value(of(base+"ListSerializerSnapshot", nil))), "list<?>", ""},
	} {
		if got := x.state.TypeText(nil); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
		if got := x.state.NamespaceText(nil); got != x.namespace {
			t.Errorf("%s: namespace %q, want %q", x.want, got, x.namespace)
		}
	}
	if got := deep.Text(nil); len(got) > 100 || !strings.Contains(got, "…") {
		t.Errorf("a type of 100 levels: %s", got)
	}
	wide := of("org.apache.flink.api.java.typeutils.runtime.RowSerializerSnapshot", make([]*Snapshot, 1000)...)
	if got := wide.Text(nil); len(got) > 100 || !strings.HasPrefix(got, "row<?, ") {
		t.Errorf("a type of 1,000 fields: %s", got)
	}
	hide := func(string) string { return "X" }
	for _, s := range []*Snapshot{pojo, list(pojo), of("com.acme.OrderSerializerSnapshot")} {
		if got := s.Text(hide); strings.Contains(got, "acme") || !strings.Contains(got, "X") {
			t.Errorf("a class is shown: %s", got)
		}
	}
}
