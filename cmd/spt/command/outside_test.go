package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
)

// These tests hold SECURITY.md: what a snapshot refers to outside its own
// directory and its checkpoint root is not read, copied or linked unless the user
// allows it, however the reference leads there.

// outsider is a snapshot whose state is outside. Below base there are ck, the
// checkpoint root, and what the snapshot must not reach.
type outsider struct {
	name string
	// make puts state, the two streams of an operator, outside, and describes the
	// snapshot with references to them. It returns the folder or file to open.
	make func(t *testing.T, o *outside) (in string)
	// follow is what allows it, below base; "" for "out".
	follow string
	named  string // what an error names; "" for s0
	inline bool   // the state is inline in what the reference leads to
}

// outside is the place of one test.
type outside struct {
	base, job string // job is the folder of the job
	sp        *format.Savepoint
	state     [2][]byte // what is outside
}

const outsideJob = "000000000000000000000000005b706e"

// chk is the folder of the checkpoint.
func (o *outside) chk() string { return o.job + "/chk-7" }

// hide writes the streams to names below base.
func (o *outside) hide(t *testing.T, names ...string) {
	t.Helper()
	for i, name := range names {
		put(t, o.base+"/"+name, string(o.state[i]))
	}
}

// refer describes the snapshot in a folder, its state being in other streams.
func (o *outside) refer(t *testing.T, dir string, stream func(i int, n int64) format.Stream) string {
	t.Helper()
	put(t, dir+"/_metadata", string(o.encode(t, stream)))
	return dir
}

func (o *outside) encode(t *testing.T, stream func(i int, n int64) format.Stream) []byte {
	t.Helper()
	sp := *o.sp
	sp.Operators = append([]*format.Operator(nil), sp.Operators...)
	for k, op := range sp.Operators {
		if !hasOffsets(op) {
			continue
		}
		c := *op
		c.Subtasks = nil
		for i, sub := range op.Subtasks {
			s, h := *sub, *sub.Managed
			h.Data = stream(i, h.Data.Size())
			if _, ok := h.Data.(*format.Segment); ok {
				h.Merging = &format.FileMerging{TaskOwnedDir: format.NewText("file:" + o.base), SharedDir: format.NewText("file:" + o.base)}
			}
			s.Managed = &h
			c.Subtasks = append(c.Subtasks, &s)
		}
		sp.Operators[k] = &c
	}
	var b bytes.Buffer
	if err := metadata.Encode(context.Background(), &b, &sp, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hasOffsets(op *format.Operator) bool {
	for _, sub := range op.Subtasks {
		if sub.Managed != nil {
			for _, st := range sub.Managed.States {
				if st.Name.String() == "offsets" {
					return true
				}
			}
		}
	}
	return false
}

func absolutely(path string, n int64) format.Stream {
	return &format.File{Path: format.NewText(path), Length: n}
}

func relatively(path string, n int64) format.Stream {
	return &format.File{Path: format.NewText(path), Relative: true, Length: n}
}

// newOutside takes a snapshot of union state, multiplied by restores.
func newOutside(t *testing.T) *outside {
	t.Helper()
	p, err := os.ReadFile("../../../testdata/savepoints/sp-007/_metadata")
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{base: realTemp(t)}
	o.job = o.base + "/ck/" + outsideJob
	// Version 6 has segments too.
	sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
	if err == nil {
		o.sp, err = metadata.WithVersion(sp, 6)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, op := range o.sp.Operators {
		if !hasOffsets(op) {
			continue
		}
		for _, sub := range op.Subtasks {
			data := make([]byte, sub.Managed.Data.Size())
			if _, err := sub.Managed.Data.(*format.Inline).Data.ReadAt(data, 0); err != nil {
				t.Fatal(err)
			}
			o.state[n] = data
			n++
		}
	}
	if n != 2 || !bytes.Contains(o.state[0], []byte("partition-")) {
		t.Fatalf("%d streams", n)
	}
	return o
}

// pack makes an .spt with bare references of a snapshot that cannot be read.
func pack(t *testing.T, dir, out string) string {
	t.Helper()
	if code, msg := runMain(t.Context(), nil, []string{"convert", dir, out, "--missing", "keep"}); code != exitFindings {
		t.Fatalf("exit %d: %s", code, msg)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return out
}

var outsiders = []outsider{
	{name: "absolute URI", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream { return absolutely(fmt.Sprintf("file:%s/out/s%d", o.base, i), n) })
	}},
	{name: "absolute path", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream { return absolutely(fmt.Sprintf("%s/out/s%d", o.base, i), n) })
	}},
	{name: "of a savepoint", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.base+"/savepoint-5b706e-0123456789ab", func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("file:%s/out/s%d", o.base, i), n)
		})
	}},
	{name: "length unknown", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, _ int64) format.Stream { return absolutely(fmt.Sprintf("file:%s/out/s%d", o.base, i), -1) })
	}},
	{name: "segment", make: func(t *testing.T, o *outside) string {
		put(t, o.base+"/out/merged", string(o.state[0])+string(o.state[1]))
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return &format.Segment{Path: format.NewText("file:" + o.base + "/out/merged"), Start: int64(i * len(o.state[0])), Length: n, LogicalID: format.NewText(fmt.Sprint("l", i))}
		})
	}, named: "merged"},
	{name: "linked file", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream { return relatively(fmt.Sprintf("s%d", i), n) })
		for i := range o.state {
			symlink(t, fmt.Sprintf("%s/out/s%d", o.base, i), fmt.Sprintf("%s/s%d", in, i))
		}
		return in
	}},
	{name: "relative link", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream { return relatively(fmt.Sprintf("s%d", i), n) })
		for i := range o.state {
			symlink(t, fmt.Sprintf("../../../out/s%d", i), fmt.Sprintf("%s/s%d", in, i))
		}
		return in
	}},
	{name: "linked folder", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream { return absolutely(fmt.Sprintf("file:%s/shared/s%d", o.job, i), n) })
		symlink(t, o.base+"/out", o.job+"/shared")
		return in
	}},
	{name: "linked folder of a copy", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("s3://old/%s/shared/s%d", outsideJob, i), n)
		})
		symlink(t, o.base+"/out", o.job+"/shared")
		return in
	}},
	{name: "another machine", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("file://otherhost%s/out/s%d", o.base, i), n)
		})
	}, follow: "file://otherhost"},
	{name: "another machine, inside", make: func(t *testing.T, o *outside) string {
		o.hide(t, "ck/elsewhere/s0", "ck/elsewhere/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("file://otherhost%s/ck/elsewhere/s%d", o.base, i), n)
		})
	}, follow: "file://otherhost"},
	{name: "relative that climbs", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream { return relatively(fmt.Sprintf("../../../out/s%d", i), n) })
	}},
	{name: "relative that goes down", make: func(t *testing.T, o *outside) string {
		o.hide(t, "ck/"+outsideJob+"/chk-7/sub/s0", "ck/"+outsideJob+"/chk-7/sub/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream { return relatively(fmt.Sprintf("sub/s%d", i), n) })
	}, follow: "ck/" + outsideJob + "/chk-7/sub"},
	{name: "absolute that climbs", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("file:%s/shared/../../../out/s%d", o.job, i), n)
		})
	}},
	{name: "root of a similar name", make: func(t *testing.T, o *outside) string {
		o.hide(t, "ck-evil/s0", "ck-evil/s1")
		return o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("file:%s/ck-evil/s%d", o.base, i), n)
		})
	}, follow: "ck-evil"},
	{name: "above a folder that is not of a job", make: func(t *testing.T, o *outside) string {
		o.hide(t, "s0", "s1")
		return o.refer(t, o.base+"/downloads/chk-7", func(i int, n int64) format.Stream { return absolutely(fmt.Sprintf("file:%s/s%d", o.base, i), n) })
	}, follow: "."},
	{name: "_metadata that is a link", make: func(t *testing.T, o *outside) string {
		put(t, o.base+"/out/description", string(o.encode(t, func(i int, _ int64) format.Stream {
			return &format.Inline{Name: format.NewText(fmt.Sprint("s", i)), Data: format.NewBytes(o.state[i])}
		})))
		put(t, o.chk()+"/note", "")
		symlink(t, o.base+"/out/description", o.chk()+"/_metadata")
		return o.chk()
	}, named: "_metadata", inline: true},
	{name: "spt, absolute", make: func(t *testing.T, o *outside) string {
		o.hide(t, "out/s0", "out/s1")
		in := o.refer(t, o.base+"/sp", func(i int, n int64) format.Stream { return absolutely(fmt.Sprintf("file:%s/out/s%d", o.base, i), n) })
		return pack(t, in, o.base+"/x.spt")
	}},
	{name: "spt, next to it", make: func(t *testing.T, o *outside) string {
		in := o.refer(t, o.base+"/sp", func(i int, n int64) format.Stream { return relatively(fmt.Sprintf("s%d", i), n) })
		pack(t, in, o.base+"/out/x.spt")
		o.hide(t, "out/s0", "out/s1")
		return o.base + "/out/x.spt"
	}},
	{name: "spt, of a checkpoint copied away", make: func(t *testing.T, o *outside) string {
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return absolutely(fmt.Sprintf("s3://old/%s/shared/s%d", outsideJob, i), n)
		})
		pack(t, in, o.chk()+".spt")
		o.hide(t, "ck/shared/s0", "ck/shared/s1")
		if err := os.Rename(o.chk()+".spt", o.base+"/ck/downloads.spt"); err != nil {
			t.Fatal(err)
		}
		put(t, o.base+"/ck/x/y", "")
		if err := os.Rename(o.base+"/ck/downloads.spt", o.base+"/ck/x/x.spt"); err != nil {
			t.Fatal(err)
		}
		return o.base + "/ck/x/x.spt"
	}, follow: "ck/shared"},
	{name: "spt, segment", make: func(t *testing.T, o *outside) string {
		put(t, o.base+"/out/merged", string(o.state[0])+string(o.state[1]))
		in := o.refer(t, o.chk(), func(i int, n int64) format.Stream {
			return &format.Segment{Path: format.NewText("file:" + o.base + "/out/merged"), Start: int64(i * len(o.state[0])), Length: n, LogicalID: format.NewText(fmt.Sprint("l", i))}
		})
		return pack(t, in, o.base+"/x.spt")
	}, named: "merged"},
}

// readings are the commands that read state. IN is the snapshot, GOOD one like it
// whose state is inline, OTHER one without its operators, OUT a target.
var readings = []struct {
	args string
	code int // of GOOD
}{
	{"cat IN --state offsets", exitOK},
	{"cat IN --state offsets -o jsonl --format redacted", exitOK},
	{"cat IN --operator a83608de --stats", exitOK},
	{"convert IN OUT.spt", exitOK},
	{"convert IN OUT", exitOK},
	{"convert IN OUT --files link", exitOK},
	{"convert IN OUT --files reference", exitOK},
	{"convert IN OUT --dry-run", exitOK},
	{"verify IN --read", exitOK},
	{"diff GOOD IN", exitFindings},
	{"diff IN GOOD", exitFindings},
	{"filter IN OUT --state offsets --where index>0", exitOK},
	{"filter IN --state offsets --where index>0", exitOK},
	{"prune-union IN", exitOK},
	{"prune-union IN OUT --state offsets --keep distinct", exitOK},
	{"rescale IN OUT --to 3", exitOK},
	{"drop IN OUT --operator ca88eee0095684d687a1b6495617f957", exitOK},
	{"rename IN OUT --uid a83608dea766885569d5a234257f6990=new", exitOK},
	{"set IN OUT --operator a83608de --state offsets --mode list", exitOK},
	{"merge OTHER OUT --from IN --operator a83608de", exitOK},
	{"merge IN OUT --from OTHER --operator lists", exitOK},
	{"apply IN OUT --recipe RECIPE", exitOK},
}

const outsideRecipe = "steps:\n  - filter: {state: offsets, where: index > 0}\n"

func TestOutsideIsNotRead(t *testing.T) {
	var runs atomic.Int64
	t.Cleanup(func() { t.Logf("%d kinds of references, %d runs that were refused", len(outsiders), runs.Load()) })
	for _, kind := range outsiders {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			in := kind.make(t, o)
			good := o.refer(t, o.base+"/good", func(i int, _ int64) format.Stream {
				return &format.Inline{Name: format.NewText(fmt.Sprint("s", i)), Data: format.NewBytes(o.state[i])}
			})
			copyTree(t, "../../../testdata/savepoints/sp-009", o.base+"/other")
			put(t, o.base+"/recipe.yaml", outsideRecipe)
			follow := o.base + "/" + kind.follow
			switch {
			case kind.follow == "":
				follow = o.base + "/out"
			case strings.Contains(kind.follow, "://"):
				follow = kind.follow + o.base
			}
			for i, c := range readings {
				out := fmt.Sprintf("%s/result-%d/x", o.base, i)
				line := func(snap string, more ...string) []string {
					args := strings.Fields(c.args)
					for k, a := range args {
						a = strings.ReplaceAll(strings.ReplaceAll(a, "OUT", out), "RECIPE", o.base+"/recipe.yaml")
						args[k] = map[string]string{"IN": snap, "GOOD": good, "OTHER": o.base + "/other"}[a]
						if args[k] == "" {
							args[k] = a
						}
					}
					return append(args, more...)
				}
				before := treeOf(t, o.base)
				code, stdout, stderr := runAll(t, line(in))
				runs.Add(1)
				// verify goes on, and reports each.
				if verify := strings.HasPrefix(c.args, "verify"); !verify && code != exitInput || verify && code != exitOK && code != exitFindings {
					t.Errorf("%s: exit %d\n%s%s", c.args, code, stdout, stderr)
				}
				named := kind.named
				if named == "" {
					named = "s0"
				}
				if all := stdout + stderr; !strings.Contains(all, named) && !strings.Contains(c.args, "redacted") {
					t.Errorf("%s does not name %s:\n%s", c.args, named, all)
				}
				if !strings.Contains(stderr, "--follow ") && !strings.HasPrefix(c.args, "verify") {
					t.Errorf("%s does not say what allows it:\n%s", c.args, stderr)
				}
				if strings.Contains(stdout+stderr, "partition-") {
					t.Errorf("%s shows what is outside:\n%s%s", c.args, stdout, stderr)
				}
				if after := treeOf(t, o.base); len(after) != len(before) {
					t.Errorf("%s left something: %d entries, then %d", c.args, len(before), len(after))
				}
				want := c.code
				switch {
				case kind.inline && strings.HasPrefix(c.args, "diff"):
					want = exitOK // nor is it elsewhere
				case strings.HasSuffix(in, ".spt") && strings.HasSuffix(c.args, "reference"):
					want = exitUsage
				}
				if code, stdout, stderr := runAll(t, line(in, "--follow", follow)); code != want {
					t.Errorf("%s --follow: exit %d, want %d\n%s%s", c.args, code, want, stdout, stderr)
				} else if strings.HasPrefix(c.args, "cat IN --state") {
					if _, same, _ := runAll(t, line(good)); stdout != same {
						t.Errorf("%s --follow:\n%s, want\n%s", c.args, stdout, same)
					}
				}
				if written, err := filepath.Glob(out + "*"); err != nil || len(written) > 0 {
					if code, stdout, stderr := runAll(t, []string{"verify", "--read", written[0], "--follow", o.base}); code != exitOK {
						t.Errorf("%s --follow: result: exit %d\n%s%s", c.args, code, stdout, stderr)
					}
				}
				if err := os.RemoveAll(filepath.Dir(out)); err != nil {
					t.Fatal(err)
				}
			}
			if code, stdout, stderr := runAll(t, []string{"check", in}); !strings.Contains(stdout, "outside") || strings.Contains(stdout+stderr, "partition-") {
				t.Errorf("check: exit %d\n%s%s", code, stdout, stderr)
			}
			// What reads no state is not stopped, and names what is outside.
			for _, args := range [][]string{{"inspect", in}, {"ls", o.base, "-o", "json"}} {
				code, stdout, stderr := runAll(t, args)
				if code != exitOK || !strings.Contains(stdout, "outside") && (!kind.inline || args[0] != "ls") || strings.Contains(stdout, "partition-") {
					t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
				}
			}
		})
	}
}

// keyedOutside are checkpoints whose shared files went with a link to outside:
// link is in the folder that holds that of the job.
var keyedOutside = []struct {
	name, link, from string
	in               string // below from
}{
	{"incremental", outsideJob + "/shared", "../../../testdata/savepoints/sp-003", outsideJob + "/chk-3"},
	{"merged files", "000000000000000000000000005b7076/taskowned", "../../../testdata/savepoints/sp-004", "000000000000000000000000005b7076/chk-1"},
	{"changelog", "dstl", "../../../testdata/savepoints/sp-006", "000000000000000000000000005b7078/chk-1"},
}

// Keyed state, of which most commands copy files and open none.
func TestKeyedStateOutsideIsNotRead(t *testing.T) {
	for _, kind := range keyedOutside {
		t.Run(kind.name, func(t *testing.T) {
			base := realTemp(t)
			copyTree(t, kind.from, base+"/ck")
			copyTree(t, kind.from, base+"/good")
			if err := os.Rename(base+"/ck/"+kind.link, base+"/out"); err != nil {
				t.Fatal(err)
			}
			symlink(t, base+"/out", base+"/ck/"+kind.link)
			in := base + "/ck/" + kind.in
			for i, args := range []string{"convert IN OUT.spt", "convert IN OUT", "convert IN OUT --files link", "convert IN OUT --files reference", "convert IN OUT --dry-run",
				"rescale IN OUT --to 4 --keyed leave", "rename IN OUT --uid numbers=n2", "verify IN --read", "diff GOOD IN"} {
				out := fmt.Sprintf("%s/result-%d/x", base, i)
				line := strings.Fields(args)
				for k, a := range line {
					switch a {
					case "IN":
						line[k] = in
					case "GOOD":
						line[k] = base + "/good/" + kind.in
					case "OUT", "OUT.spt":
						line[k] = out + a[len("OUT"):]
					}
				}
				before := treeOf(t, base)
				code, stdout, stderr := runAll(t, line)
				if verify := strings.HasPrefix(args, "verify"); !verify && (code != exitInput || !strings.Contains(stderr, "hint: ") || !strings.Contains(stderr, "--follow "+base+"/out")) || verify && code != exitOK && code != exitFindings {
					t.Errorf("%s: exit %d\n%s%s", args, code, stdout, stderr)
				}
				if after := treeOf(t, base); len(after) != len(before) {
					t.Errorf("%s left something: %d entries, then %d", args, len(before), len(after))
				}
				if code, stdout, stderr := runAll(t, append(line, "--follow", base+"/out")); code != exitOK {
					t.Errorf("%s --follow: exit %d\n%s%s", args, code, stdout, stderr)
				}
				if written, err := filepath.Glob(out + "*"); err != nil || len(written) > 0 {
					if code, stdout, stderr := runAll(t, []string{"verify", "--read", written[0], "--follow", base}); code != exitOK {
						t.Errorf("%s --follow: result: exit %d\n%s%s", args, code, stdout, stderr)
					}
				}
			}
			code, stdout, stderr := runAll(t, []string{"inspect", in})
			if code != exitOK || !strings.Contains(stdout, "outside the snapshot") || !strings.Contains(stdout, "--follow "+base+"/out") {
				t.Errorf("inspect: exit %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}

// Files of a stranger, made by another program: 250 bytes of which convert once
// made a copy of /etc/passwd.
func TestBareReferencesOfAStranger(t *testing.T) {
	for _, name := range []string{"bare-ref-etc.spt", "bare-ref-rel.spt"} {
		in, out := "../../../testdata/reported/hostile/"+name, realTemp(t)+"/out"
		for _, args := range [][]string{{"convert", in, out + ".spt"}, {"convert", in, out}, {"convert", in, out, "--files", "link"}} {
			code, stdout, stderr := runAll(t, args)
			if code != exitInput || !strings.Contains(stderr, "etc/passwd") || strings.Contains(stdout+stderr, "root:") {
				t.Errorf("%q: exit %d\n%s%s", args, code, stdout, stderr)
			}
			if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
				t.Errorf("%q left %v, %v", args, left, err)
			}
		}
	}
}

func runAll(t *testing.T, args []string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := OSEnv()
	env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &out, &errs, nil, nil
	env.Getenv = func(string) string { return "" }
	return Main(t.Context(), args, env), out.String(), errs.String()
}
