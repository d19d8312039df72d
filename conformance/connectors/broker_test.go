package connectors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

const kafka, partitions, records = "kafka-4.1", 4, 100

// broker is a running Kafka broker.
type broker struct{ address string }

// startBroker starts a broker in KRaft mode, which is killed when the test ends.
func startBroker(t *testing.T) *broker {
	t.Helper()
	port, controller, dir := servertest.Port(t), servertest.Port(t), t.TempDir()
	conf := filepath.Join(dir, "server.properties")
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=%[3]s
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
`, port, controller, filepath.Join(dir, "data"))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	conformance.Output(t, conformance.Command(t, "connectors/broker", kafka, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", conf))
	b := &broker{fmt.Sprintf("127.0.0.1:%d", port)}
	servertest.Start(t, conformance.Command(t, "connectors/broker", kafka, "kafka.Kafka", conf), func() error {
		// An open port is too early: it is ready when it creates a topic.
		return conformance.Command(t, "connectors/broker", kafka, "spt.broker.Records", b.address, "create", "ready", "1").Run()
	})
	return b
}

func (b *broker) ask(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(conformance.Output(t, conformance.Command(t, "connectors/broker", kafka, "spt.broker.Records", append([]string{b.address}, args...)...)))
}

// run runs the job until it has read so many records, and returns its savepoint and
// what it read.
func (b *broker) run(t *testing.T, version conformance.Version, topic string, count int, from, sink string) (savepoint string, read map[string][]int) {
	t.Helper()
	text := conformance.Output(t, conformance.Command(t, "connectors", "flink-"+string(version), "spt.connectors.Job", b.address, topic, strconv.Itoa(count), "file:"+t.TempDir(), from, sink))
	read = map[string][]int{}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "savepoint":
			savepoint = strings.TrimPrefix(rest, "file:")
		case "record":
			p, i, _ := strings.Cut(rest, "-")
			n, err := strconv.Atoi(i)
			if err != nil {
				t.Fatal(line)
			}
			read[p] = append(read[p], n)
		}
	}
	if savepoint == "" {
		t.Fatalf("no savepoint: %s", text)
	}
	for _, all := range read {
		slices.Sort(all)
	}
	return savepoint, read
}

// upTo returns the numbers from a to b.
func upTo(a, b int) (all []int) {
	for i := a; i < b; i++ {
		all = append(all, i)
	}
	return all
}

func seal(t *testing.T, v format.View) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "edited")
	if _, err := writer.Write(t.Context(), v, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSourceReadsFromEditedOffsets: a source that was restored with other offsets reads
// exactly from there; without one of its topics it finds the partitions as new ones.
func TestSourceReadsFromEditedOffsets(t *testing.T) {
	b := startBroker(t)
	for _, version := range conformance.Versions() {
		t.Run(string(version), func(t *testing.T) {
			topic := "orders-" + string(version)
			b.ask(t, "create", topic, strconv.Itoa(partitions))
			b.ask(t, "produce", topic, strconv.Itoa(partitions), "0", strconv.Itoa(records))
			savepoint, read := b.run(t, version, topic, partitions*records, "-", "-")
			for p := range partitions {
				if got := read[strconv.Itoa(p)]; !slices.Equal(got, upTo(0, records)) {
					t.Fatalf("partition %d: %v", p, got)
				}
			}
			view := sptest.Open(t, savepoint).View()
			now := offsetsOf(t, view, topic)
			if want := []string{"0@100", "1@100", "2@100", "3@100"}; !slices.Equal(now, want) {
				t.Fatalf("%v, expected %v", now, want)
			}
			b.ask(t, "produce", topic, strconv.Itoa(partitions), strconv.Itoa(records), strconv.Itoa(records+1)) // one more each
			var set []transform.OffsetChange
			starts := []int{5, 97, 100, 42}
			want := 0
			for p, at := range starts {
				set = append(set, transform.OffsetChange{Topic: topic, Partition: strconv.Itoa(p), At: connector.AtOffset, Offset: int64(at)})
				want += records + 1 - at
			}
			edited, report, err := transform.SetOffsets(t.Context(), view, transform.SetOffsetsOptions{Set: set})
			if err != nil || len(report.Set) != partitions-1 { // one keeps its offset
				t.Fatal(err, report)
			}
			after, read := b.run(t, version, topic, want, seal(t, edited), "-")
			for p, at := range starts {
				if got := read[strconv.Itoa(p)]; !slices.Equal(got, upTo(at, records+1)) {
					t.Errorf("partition %d was read from %v, expected %d to %d", p, got, at, records)
				}
			}
			if now, want := offsetsOf(t, sptest.Open(t, after).View(), topic), []string{"0@101", "1@101", "2@101", "3@101"}; !slices.Equal(now, want) {
				t.Errorf("%v, expected %v", now, want)
			}

			// earliest and latest, in one job
			edited, _, err = transform.SetOffsets(t.Context(), view, transform.SetOffsetsOptions{Set: []transform.OffsetChange{
				{Topic: topic, At: connector.AtLatest}, {Topic: topic, Partition: "1", At: connector.AtEarliest}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, read = b.run(t, version, topic, records+1, seal(t, edited), "-"); !slices.Equal(read["1"], upTo(0, records+1)) || len(read) != 1 {
				t.Errorf("from the earliest of partition 1, and the latest of the others: %v", read)
			}

			dropped, gone, err := transform.SetOffsets(t.Context(), view, transform.SetOffsetsOptions{DropTopics: []string{topic}})
			if err != nil || len(gone.Dropped) != partitions {
				t.Fatal(err, gone)
			}
			if _, read = b.run(t, version, topic, partitions*(records+1), seal(t, dropped), "-"); len(read["0"]) != records+1 || len(read["3"]) != records+1 {
				t.Errorf("a topic that was dropped and is still subscribed is not read from the earliest record: %v", read)
			}
		})
	}
}

// offsetsOf returns the positions of a topic as partition@offset; anything else fails.
func offsetsOf(t *testing.T, view format.View, topic string) (all []string) {
	t.Helper()
	r, err := transform.Offsets(context.Background(), view, transform.OffsetsOptions{})
	if err != nil || len(r.Sources) != 1 || len(r.Sources[0].Undecoded) > 0 {
		t.Fatalf("%v %+v", err, r)
	}
	for _, p := range r.Sources[0].Partitions {
		if p.Topic != topic || p.Trouble != transform.NoTrouble {
			t.Errorf("%+v", p)
		}
		if p.Subtask >= 0 {
			all = append(all, fmt.Sprintf("%s@%d", p.Partition, p.Offset))
		}
	}
	return all
}

// TestSinkCommitsWhatIsPending: what Pending lists is committed by a restore, and lost
// by one without that state, of which Drop warns.
func TestSinkCommitsWhatIsPending(t *testing.T) {
	b := startBroker(t)
	for _, version := range conformance.Versions() {
		t.Run(string(version), func(t *testing.T) {
			name := strings.ReplaceAll(string(version), ".", "-")
			in := "in-" + name
			b.ask(t, "create", in, strconv.Itoa(partitions))
			b.ask(t, "produce", in, strconv.Itoa(partitions), "0", strconv.Itoa(records))
			for _, drop := range []bool{false, true} {
				sink := fmt.Sprintf("out-%s-%v", name, drop)
				b.ask(t, "create", sink, "1")
				savepoint, _ := b.run(t, version, in, partitions*records, "-", sink)
				if n := b.ask(t, "count", sink, "1", "read_committed"); n != "0" {
					t.Fatalf("%s records are committed", n)
				}
				view := sptest.Open(t, savepoint).View()
				pending, err := transform.Pending(t.Context(), view, transform.PendingOptions{})
				if err != nil || len(pending.Sinks) == 0 {
					t.Fatal(err, pending)
				}
				transactions := 0
				for _, s := range pending.Sinks {
					for _, u := range s.Undecoded {
						t.Errorf("not decoded: %+v", u)
					}
					for _, c := range s.Commits {
						if c.Fate == connector.FateCommit {
							transactions++
							if !strings.HasPrefix(c.TransactionalID, sink) || c.ProducerID == nil || c.Epoch == nil || c.Checkpoint == nil {
								t.Errorf("%+v", c)
							}
						} else if c.Prefix != sink {
							t.Errorf("%+v", c)
						}
					}
				}
				if transactions == 0 {
					t.Error("no transaction is pending")
				}
				expected := strconv.Itoa(partitions * records)
				if drop {
					expected = "0"
					var dropped *transform.DropReport
					view, dropped, err = transform.Drop(t.Context(), view, transform.DropOptions{States: format.ByName("streaming_committer_raw_states")})
					if err != nil || len(dropped.Commits) != 1 || dropped.Commits[0].Count(connector.FateCommit) != transactions {
						t.Fatalf("%v: no warning of %d transactions: %+v", err, transactions, dropped)
					}
				}
				b.run(t, version, in, 0, seal(t, view), sink)
				if n := b.ask(t, "count", sink, "1", "read_committed"); n != expected {
					t.Errorf("dropped: %v: %s records are committed after the restore, expected %s", drop, n, expected)
				}
				t.Logf("dropped: %v: %d transactions, %s records committed", drop, transactions, expected)
			}
		})
	}
}
