package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

const twoSubtasks = `{"operators": [{"uid": "a", "name": "a", "id": "00", "parallelism": 2, "subtasks": [
 {"index": 0, "key_groups": [0, 1],
  "operator_state": {"l": {"kind": "list", "elements": [1, 2], "raw": ["01", "02"]}, "u": {"kind": "union", "elements": [7], "raw": ["07"]}, "b": {"kind": "broadcast", "entries": [["k", 0]]}},
  "keyed_state": {"v": {"kind": "value", "entries": [{"key_group": 1, "key": 5, "namespace": null, "value": 50}]}},
  "timers": {"t": {"event": [{"key_group": 0, "key": 4, "namespace": null, "timestamp": 9}], "processing": []}}},
 {"index": 1, "key_groups": [2, 3],
  "operator_state": {"l": {"kind": "list", "elements": [3], "raw": ["03"]}, "u": {"kind": "union", "elements": [8], "raw": ["08"]}, "b": {"kind": "broadcast", "entries": [["k", 1]]}},
  "keyed_state": {"v": {"kind": "value", "entries": [{"key_group": 3, "key": 6, "namespace": null, "value": 60}]}}}]}]}`

const oneSubtask = `{"operators": [{"uid": "a", "name": "a", "id": "00", "parallelism": 1, "subtasks": [
 {"index": 0, "key_groups": [0, 3],
  "operator_state": {"l": {"kind": "list", "elements": [3, 1, 2], "raw": ["03", "01", "02"]}, "u": {"kind": "union", "elements": [8, 7], "raw": ["08", "07"]}, "b": {"kind": "broadcast", "entries": [["k", 0]]}},
  "keyed_state": {"v": {"kind": "value", "entries": [{"key_group": 1, "key": 5, "namespace": null, "value": 50}, {"key_group": 3, "key": 6, "namespace": null, "value": 60}]}},
  "timers": {"t": {"event": [{"key_group": 0, "key": 4, "namespace": null, "timestamp": 9}], "processing": []}}}]}]}`

func TestCheckRedistributed(t *testing.T) {
	truth := parse(t, twoSubtasks)
	if wrong := CheckRedistributed(truth, parse(t, oneSubtask)); len(wrong) > 0 {
		t.Errorf("a right restore is found wrong: %v", wrong)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"lost element":         {`[3, 1, 2], "raw": ["03", "01", "02"]`, `[3, 1], "raw": ["03", "01"]`, "a/l: other elements"},
		"doubled element":      {`[3, 1, 2], "raw": ["03", "01", "02"]`, `[3, 1, 2, 2], "raw": ["03", "01", "02", "02"]`, "a/l: other elements"},
		"other bytes":          {`"raw": ["03", "01", "02"]`, `"raw": ["03", "01", "ff"]`, "a/l: other elements"},
		"union incomplete":     {`[8, 7], "raw": ["08", "07"]`, `[8], "raw": ["08"]`, "a/u: subtask 0"},
		"union became list":    {`"kind": "union"`, `"kind": "list"`, `a/u: kind "list"`},
		"mixed broadcast":      {`[["k", 0]]`, `[["k", 2]]`, "a/b: subtask 0 holds what no subtask had"},
		"other value":          {`"value": 50`, `"value": 51`, "a: keyed state or timers differ"},
		"key in another group": {`"key_group": 1, "key": 5`, `"key_group": 0, "key": 5`, "a: keyed state or timers differ"},
		"outside its groups":   {`"key_groups": [0, 3]`, `"key_groups": [0, 2]`, "subtask 0 holds key group 3"},
		"gap in the groups":    {`"key_groups": [0, 3]`, `"key_groups": [1, 3]`, "starts at key group 1"},
		"timer moved":          {`"timestamp": 9`, `"timestamp": 10`, "a: keyed state or timers differ"},
		"operator gone":        {`"id": "00"`, `"id": "01"`, "operator 00 (a) is missing"},
		"subtask gone":         {`"parallelism": 1`, `"parallelism": 2`, "1 subtasks at parallelism 2"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(oneSubtask, c.old, c.new, 1)
			if text == oneSubtask {
				t.Fatalf("%q is not there", c.old)
			}
			wrong := strings.Join(CheckRedistributed(truth, parse(t, text)), "\n")
			if !strings.Contains(wrong, c.want) {
				t.Errorf("got %q, want %q", wrong, c.want)
			}
		})
	}
	swapped := strings.NewReplacer("[1, 2]", "[2, 1]", `["01", "02"]`, `["02", "01"]`).Replace(twoSubtasks)
	if wrong := CheckRedistributed(truth, parse(t, swapped)); len(wrong) == 0 {
		t.Error("another order at the same parallelism went unnoticed")
	}
}

func TestDiffSeesOrder(t *testing.T) {
	truth := parse(t, twoSubtasks)
	if diff := Diff(truth, parse(t, twoSubtasks)); diff != "" {
		t.Errorf("equal contents differ:\n%s", diff)
	}
	swapped := strings.NewReplacer("[1, 2]", "[2, 1]", `["01", "02"]`, `["02", "01"]`).Replace(twoSubtasks)
	if Diff(truth, parse(t, swapped)) == "" {
		t.Error("the order of elements does not count")
	}
}

func TestLoosenedForgetsOnlyOrderAndClock(t *testing.T) {
	one := `{"operators": [{"subtasks": [{"keyed_state": {"l": {"kind": "list", "ttl": true, "entries": [{"value": [{"ttl_timestamp": 1, "value": "x"}, {"ttl_timestamp": 2, "value": "y"}]}]}}}]}]}`
	same := `{"operators": [{"subtasks": [{"keyed_state": {"l": {"kind": "list", "ttl": true, "entries": [{"value": [{"ttl_timestamp": 5, "value": "y"}, {"ttl_timestamp": 6, "value": "x"}]}]}}}]}]}`
	other := strings.Replace(same, `"y"`, `"z"`, 1)
	if diff := Diff(Loosened(parse(t, one)), Loosened(parse(t, same))); diff != "" {
		t.Errorf("order and clock count:\n%s", diff)
	}
	if Diff(Loosened(parse(t, one)), Loosened(parse(t, other))) == "" {
		t.Error("another value went unnoticed")
	}
}

func parse(t *testing.T, text string) Content {
	t.Helper()
	var content Content
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestStoredAt(t *testing.T) {
	dir, err := Base()
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		named + "/a":         dir + "/a",
		named + "/a/b":       dir + "/a/b",
		named:                "",
		named + "x/a":        "",
		named + "/":          "",
		named + "/.":         "",
		named + "/../a":      "",
		named + "/a/../../b": "",
		dir + "/a":           "",
		"/":                  "",
		"":                   "",
	} {
		got, err := storedAt(place)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, expected %q", place, got, err, want)
		}
	}
}
