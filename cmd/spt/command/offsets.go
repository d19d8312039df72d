package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type offsetsOptions struct {
	operators []string
	since     string
}

func (o *offsetsOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
	fs.StringVar(&o.since, "since", "", "show how far each partition was read since the snapshot `OLDER`")
}

func (o *offsetsOptions) validate() error {
	p := pick{operators: o.operators}
	return p.validate()
}

func newOffsetsCommand(env *Env) *cobra.Command {
	var o offsetsOptions
	cmd := &cobra.Command{
		Use:   "offsets SP",
		Short: "Show the read positions of sources, by topic and partition",
		Long: `Shows where sources would read on after a restore: topic and partition (stream
and shard, file and split), the position, and the subtask that holds it. The
states are found by their names, for all sources with readers and a coordinator
(Kafka, Kinesis, Pulsar, files, Flink CDC, …), for FlinkKafkaConsumer,
FlinkKinesisConsumer and DebeziumSourceFunction. docs/connectors.md has the
list.

POSITION is the offset of the next record, or a marker: -1 latest, -2 earliest,
-3 committed by the group, Long.MIN_VALUE unknown. FlinkKafkaConsumer stores the
last record that was read; the next one is printed, and in JSON both. STOP is
the offset at which reading ends.

Partitions that several readers hold, that a reader and the coordinator do not
agree about, or that no reader holds are marked and explained. The coordinators
of other sources than Kafka do not list what their readers have.

State that is not decoded is named with the reason, and the exit code is 1.`,
		Example: `  spt offsets sp-011
  spt offsets chk-4211 --since chk-4100
  spt offsets chk-4211 -o csv > offsets.csv`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runOffsets(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runOffsets(ctx context.Context, o offsetsOptions, env *Env, location string) error {
	all, err := o.read(ctx, env, location, o.operators)
	if err != nil {
		return err
	}
	var older *transform.OffsetsReport
	if o.since != "" {
		if older, err = o.read(ctx, env, o.since, nil); err != nil {
			return err
		}
	}
	r := env.run.NewOffsets(all, older, o.since)
	if err := env.answer(r); err != nil {
		return err
	}
	return notDecoded(len(r.NotDecoded))
}

// read returns the positions in a snapshot.
func (o *offsetsOptions) read(ctx context.Context, env *Env, location string, operators []string) (r *transform.OffsetsReport, err error) {
	snap, err := env.open(ctx, location)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return offsetsOf(ctx, env, snap, operators)
}

// offsetsOf returns the positions in an open snapshot.
func offsetsOf(ctx context.Context, env *Env, snap *reader.Snapshot, operators []string) (*transform.OffsetsReport, error) {
	chosen, err := env.chooseOperators(operators, snap.Operators)
	if err != nil {
		return nil, err
	}
	stop := env.reading("reading", nil)
	defer stop()
	r, err := transform.Offsets(ctx, snap.View(), transform.OffsetsOptions{Operators: selectorOf(snap.Operators, chosen)})
	if err != nil {
		return nil, inContainer(err, snap)
	}
	return r, nil
}
