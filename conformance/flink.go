package conformance

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// patience is the time limit of a request: only a JVM that hangs takes that long.
const patience = 20 * time.Minute

// RefusedError is Flink's refusal to make or restore something: its root cause,
// and the chain that led there, outermost first.
type RefusedError struct {
	Cause string
	Chain []string
}

func (e *RefusedError) Error() string { return e.Cause }

// Flink is one JVM in which one version of Flink runs. Its methods may be
// called from several goroutines; requests are answered one at a time.
type Flink struct {
	version Version
	process *exec.Cmd
	stdin   io.WriteCloser
	answers chan answer
	logFile string
	scratch string // of the JVM, which removes it at a normal exit

	mu     sync.Mutex
	broken error
}

type answer struct {
	line []byte
	err  error
}

// Start builds the Java side where needed and starts it.
func Start(version Version) (*Flink, error) {
	program, err := build(version)
	if err != nil {
		return nil, err
	}
	return start(version, program, "")
}

// start starts a JVM with more options; the name distinguishes it from others of the
// same version.
func start(version Version, program program, name string, more ...string) (*Flink, error) {
	dir, err := Base()
	if err != nil {
		return nil, err
	}
	name = string(version) + name
	log, err := os.CreateTemp("", "flink-"+name+"-*.log")
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process holds its own descriptor
	scratch := filepath.Join(dir, ".scratch-"+name)
	process := exec.Command(program.java, append(more,
		"-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"--add-opens=java.base/java.lang=ALL-UNNAMED",
		"--add-opens=java.base/java.util=ALL-UNNAMED",
		"--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
		"--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
		"--add-opens=java.base/java.time=ALL-UNNAMED",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.logFile=System.err",
		"-Dspt.fixtures="+dir,
		"-cp", program.classPath, "spt.oracle.Main", scratch)...)
	process.Stderr = log
	stdin, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	f := &Flink{version: version, process: process, stdin: stdin, logFile: log.Name(), scratch: scratch, answers: make(chan answer)}
	go f.listen(stdout)
	return f, nil
}

func (f *Flink) listen(stdout io.Reader) {
	reader := bufio.NewReaderSize(stdout, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		f.answers <- answer{line, err}
		if err != nil {
			return
		}
	}
}

// Version is the line of Flink that runs.
func (f *Flink) Version() Version { return f.version }

// Make runs the job of the options, takes its snapshot, and writes to out what each
// directory of the known corpus holds: savepoint/, truth.json, metadata.json,
// about.json. options.At is the directory below /spt-fixtures that absolute paths
// in the files name; if empty, Make uses an unused one.
func (f *Flink) Make(options Options, out string) (Snapshot, error) {
	if options.At == "" {
		options.At = newDirectory()
	}
	at, err := storedAt(options.At)
	if err != nil {
		return Snapshot{}, err
	}
	defer os.RemoveAll(at) //nolint:errcheck // ours, and the next use of it removes it first
	for attempt := 0; ; attempt++ {
		if err := os.RemoveAll(at); err != nil {
			return Snapshot{}, err
		}
		_, err := f.ask(map[string]any{"command": "make", "out": out, "options": options})
		var refused *RefusedError
		if errors.As(err, &refused) && strings.Contains(refused.Cause, "NothingInFlight") && attempt < 20 {
			continue
		}
		if err != nil {
			return Snapshot{}, err
		}
		break
	}
	if err := copyTree(at, filepath.Join(out, "savepoint")); err != nil {
		return Snapshot{}, err
	}
	return OpenSnapshot(out)
}

// Restore starts the job of the snapshot from it and returns what Flink assigned
// to each subtask. If Flink refuses, the error is a *RefusedError.
func (f *Flink) Restore(s Snapshot, choices Choices) (Content, error) {
	text, err := f.restore(s, choices)
	if err != nil {
		return Content{}, err
	}
	var content Content
	return content, json.Unmarshal(text, &content)
}

func (f *Flink) restore(s Snapshot, choices Choices) (json.RawMessage, error) {
	var result struct {
		Restored json.RawMessage `json:"restored"`
	}
	options := s.Options
	options.At = s.At // the job's own directory for checkpoints: inPlace removes it
	err := s.inPlace(func(path, _ string) error {
		line, err := f.ask(map[string]any{"command": "restore", "snapshot": path, "options": options, "choices": choices})
		if err != nil {
			return err
		}
		restores.count(f.version)
		return json.Unmarshal(line, &result)
	})
	return result.Restored, err
}

// Fired is a timer that fired in a job: of the user's function, or of a window, which then
// has the average of its numbers.
type Fired struct {
	Operator  string   `json:"operator"`
	Domain    string   `json:"domain"` // event, processing
	Key       Value    `json:"key"`
	Timestamp int64    `json:"timestamp"`
	Value     *float64 `json:"value"`
}

// Fire restores the job of the snapshot and emits watermarks, one after the other. It
// returns for each the timers that fired after it and before the next; overdue timers of
// processing time fire at once. The counts are the numbers of timers to wait for.
func (f *Flink) Fire(s Snapshot, choices Choices, watermarks []int64, counts []int) ([][]Fired, error) {
	var result struct{ Fired [][]Fired }
	options := s.Options
	options.At = s.At
	err := s.inPlace(func(path, _ string) error {
		line, err := f.ask(map[string]any{"command": "fire", "snapshot": path, "options": options, "choices": choices, "watermarks": watermarks, "counts": counts})
		if err != nil {
			return err
		}
		restores.count(f.version)
		return json.Unmarshal(line, &result)
	})
	return result.Fired, err
}

// Proceed restores the job from a retained checkpoint, lets it continue, takes its
// next checkpoint, and writes to out what Make does. The new checkpoint may use
// files of the old one: savepoint/ holds both.
func (f *Flink) Proceed(s Snapshot, choices Choices, out string) (Snapshot, error) {
	options := s.Options
	options.At = s.At
	err := s.inPlace(func(path, at string) error {
		request := map[string]any{"command": "proceed", "snapshot": path, "options": options, "choices": choices, "out": out}
		if _, err := f.ask(request); err != nil {
			return err
		}
		restores.count(f.version)
		return copyTree(at, filepath.Join(out, "savepoint"))
	})
	if err != nil {
		return Snapshot{}, err
	}
	return OpenSnapshot(out)
}

// Metadata returns the snapshot's _metadata as Flink's own reader sees it, as in the
// corpus's metadata.json.
func (f *Flink) Metadata(s Snapshot) (Metadata, error) {
	var result struct {
		Metadata Metadata `json:"metadata"`
	}
	err := s.inPlace(func(path, _ string) error {
		line, err := f.ask(map[string]any{"command": "metadata", "snapshot": path})
		if err != nil {
			return err
		}
		return json.Unmarshal(line, &result)
	})
	return result.Metadata, err
}

// Craft rewrites a copy of the snapshot, with Flink's own classes, into one that
// Flink itself never writes, and stores it in dir. Craft.java defines the kinds.
func (f *Flink) Craft(s Snapshot, kind, dir string) (Snapshot, error) {
	err := s.inPlace(func(path, at string) error {
		if _, err := f.ask(map[string]any{"command": "craft", "kind": kind, "snapshot": path}); err != nil {
			return err
		}
		return copyTree(at, dir)
	})
	crafted := s
	crafted.Dir = dir
	return crafted, err
}

// Serializers returns serializer snapshots that Flink made, in their wrapper, by
// type. See Serializers.java.
func (f *Flink) Serializers() (map[string][]byte, error) {
	line, err := f.ask(map[string]any{"command": "serializers"})
	if err != nil {
		return nil, err
	}
	var result struct {
		Snapshots map[string]string `json:"snapshots"`
	}
	if err := json.Unmarshal(line, &result); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for name, text := range result.Snapshots {
		if all[name], err = hex.DecodeString(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// SerializedValue is a value as Flink wrote it, its serializer snapshot, and the
// value as text.
type SerializedValue struct {
	Snapshot, Bytes []byte
	Text            string
}

// Values returns values of many types. See Serializers.java.
func (f *Flink) Values() ([]SerializedValue, error) { return f.values("values") }

// Hashes returns values of types that can be keys; their text is the hash code. See
// Hashes.java.
func (f *Flink) Hashes() ([]SerializedValue, error) { return f.values("hashes") }

func (f *Flink) values(command string) ([]SerializedValue, error) {
	line, err := f.ask(map[string]any{"command": command})
	if err != nil {
		return nil, err
	}
	var result struct {
		Values []struct{ Snapshot, Bytes, Text string } `json:"values"`
	}
	if err := json.Unmarshal(line, &result); err != nil {
		return nil, err
	}
	all := make([]SerializedValue, len(result.Values))
	for i, v := range result.Values {
		all[i].Text = v.Text
		if all[i].Snapshot, err = hex.DecodeString(v.Snapshot); err != nil {
			return nil, err
		}
		if all[i].Bytes, err = hex.DecodeString(v.Bytes); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Reread lets Flink read values with the serializers of their snapshots, and returns
// what it writes for each then; an error for those that it does not read.
func (f *Flink) Reread(values []SerializedValue) (written [][]byte, refused []error, err error) {
	type value struct {
		Snapshot string `json:"snapshot"`
		Bytes    string `json:"bytes"`
	}
	var asked []value
	for _, v := range values {
		asked = append(asked, value{hex.EncodeToString(v.Snapshot), hex.EncodeToString(v.Bytes)})
	}
	line, err := f.ask(map[string]any{"command": "reread", "values": asked})
	if err != nil {
		return nil, nil, err
	}
	var result struct {
		Answers []string `json:"answers"`
	}
	if err := json.Unmarshal(line, &result); err != nil {
		return nil, nil, err
	}
	if len(result.Answers) != len(values) {
		return nil, nil, fmt.Errorf("%d answers to %d questions", len(result.Answers), len(values))
	}
	written, refused = make([][]byte, len(values)), make([]error, len(values))
	for i, answer := range result.Answers {
		if why, ok := strings.CutPrefix(answer, "refused: "); ok {
			refused[i] = errors.New(why)
		} else if written[i], err = hex.DecodeString(answer); err != nil {
			return nil, nil, err
		}
	}
	return written, refused, nil
}

// Succession is a serializer that takes over from another one, both as
// snapshots in their wrapper.
type Succession struct{ Was, Now []byte }

// Compare returns the compatibility that Flink reports: "fits", "migrates",
// "refused", or "refused: " and the reason.
func (f *Flink) Compare(pairs []Succession) ([]string, error) {
	type pair struct {
		Was string `json:"was"`
		Now string `json:"now"`
	}
	var asked []pair
	for _, p := range pairs {
		asked = append(asked, pair{hex.EncodeToString(p.Was), hex.EncodeToString(p.Now)})
	}
	line, err := f.ask(map[string]any{"command": "compare", "pairs": asked})
	if err != nil {
		return nil, err
	}
	var result struct {
		Answers []string `json:"answers"`
	}
	err = json.Unmarshal(line, &result)
	if err == nil && len(result.Answers) != len(pairs) {
		err = fmt.Errorf("%d answers to %d questions", len(result.Answers), len(pairs))
	}
	return result.Answers, err
}

// Close ends the JVM.
func (f *Flink) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = errors.New("closed")
	}
	err := f.stdin.Close()
	go func() { // the listener must not block on an answer that nothing receives
		for a := range f.answers {
			if a.err != nil {
				return
			}
		}
	}()
	kill := time.AfterFunc(20*time.Second, func() { f.process.Process.Kill() }) //nolint:errcheck // it may be gone
	defer kill.Stop()
	return errors.Join(err, f.process.Wait(), os.Remove(f.logFile), os.RemoveAll(f.scratch))
}

// ask sends one request and waits for its answer.
func (f *Flink) ask(request any) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return nil, f.broken
	}
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := f.stdin.Write(append(line, '\n')); err != nil {
		f.broken = fmt.Errorf("flink %s: %w", f.version, err)
		return nil, f.broken
	}
	var got answer
	select {
	case got = <-f.answers:
	case <-time.After(patience):
		f.process.Process.Kill() //nolint:errcheck // it may be gone
		got.err = fmt.Errorf("no answer within %v", patience)
	}
	if got.err != nil {
		f.broken = fmt.Errorf("flink %s: %w", f.version, got.err)
		return nil, f.broken
	}
	var refused struct {
		Error  string   `json:"error"`
		Causes []string `json:"causes"`
	}
	if err := json.Unmarshal(got.line, &refused); err != nil {
		return nil, fmt.Errorf("flink %s answered %.200q: %w", f.version, got.line, err)
	}
	if refused.Error != "" {
		return nil, &RefusedError{Cause: refused.Error, Chain: refused.Causes}
	}
	return got.line, nil
}

// logSize returns the number of bytes in Flink's log.
func (f *Flink) logSize() int64 {
	info, err := os.Stat(f.logFile)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logSince returns the end of the log from a position on.
func (f *Flink) logSince(from int64) string {
	const most = 16 << 10
	file, err := os.Open(f.logFile)
	if err != nil {
		return err.Error()
	}
	defer file.Close() //nolint:errcheck // read only
	if size := f.logSize(); size-from > most {
		from = size - most
	}
	text, err := io.ReadAll(io.NewSectionReader(file, from, most))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
