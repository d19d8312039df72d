package export

import "github.com/prometheus/client_golang/prometheus"

// Metric documents a metric.
type Metric struct {
	Name   string
	Help   string // one sentence
	Type   string // gauge or counter
	Labels []string

	desc *prometheus.Desc
}

// The label of a job is its directory: Prometheus has a label "job" of its own.
var (
	rootLabels  = []string{"root"}
	jobLabels   = []string{"root", "directory"}
	stateLabels = []string{"root", "directory", "operator", "operator_id", "state", "kind"}
)

// metrics is the table of all metrics.
type metrics struct {
	completeID, completeTime, completeAge                                       *Metric
	stateBytes, inlineBytes, metadataBytes, operators, files                    *Metric
	missing, wrong, unchecked, limit, limitSeconds                              *Metric
	directories, damaged, firing                                                *Metric
	bytes, inline, elements, stateLimit, unionRestore, unionGrowth, unionDouble *Metric
	orphanFiles, orphanBytes                                                    *Metric
	reads, errors, success, webhooks, dropped                                   *Metric

	all []*Metric
}

// newMetrics returns the table, in the order of the documentation.
func newMetrics() *metrics {
	m := &metrics{}
	add := func(kind, name string, labels []string, help string) *Metric {
		x := &Metric{Name: name, Help: help, Type: kind, Labels: labels, desc: prometheus.NewDesc(name, help, labels, nil)}
		m.all = append(m.all, x)
		return x
	}
	gauge := func(name string, labels []string, help string) *Metric { return add("gauge", name, labels, help) }
	counter := func(name string, labels []string, help string) *Metric { return add("counter", name, labels, help) }
	with := func(labels []string, more string) []string { return append(append([]string(nil), labels...), more) }

	m.completeID = gauge("spt_checkpoint_id", jobLabels, "Id of the newest complete checkpoint: no file of it is known to be missing.")
	m.completeTime = gauge("spt_checkpoint_timestamp_seconds", jobLabels, "When the newest complete checkpoint was written, in seconds since 1970.")
	m.completeAge = gauge("spt_checkpoint_age_seconds", jobLabels, "Age of the newest complete checkpoint when the metrics were read or written.")
	m.stateBytes = gauge("spt_checkpoint_state_bytes", jobLabels, "Bytes of state of the newest checkpoint, inline and in files.")
	m.inlineBytes = gauge("spt_checkpoint_inline_bytes", jobLabels, "Bytes of state that are inline in _metadata of the newest checkpoint.")
	m.metadataBytes = gauge("spt_checkpoint_metadata_bytes", jobLabels, "Size of _metadata of the newest checkpoint.")
	m.operators = gauge("spt_checkpoint_operators", jobLabels, "Operators of the newest checkpoint.")
	m.files = gauge("spt_checkpoint_files", jobLabels, "Files that the newest checkpoint refers to.")
	m.missing = gauge("spt_checkpoint_missing_files", jobLabels, "Files that the newest checkpoint refers to and that do not exist.")
	m.wrong = gauge("spt_checkpoint_wrong_files", jobLabels, "Files of the newest checkpoint whose length is not the recorded one.")
	m.unchecked = gauge("spt_checkpoint_unchecked_files", jobLabels, "Files of the newest checkpoint that nobody looked for; they may exist.")
	m.limit = gauge("spt_checkpoint_limit_checkpoints", with(jobLabels, "quantity"), "Checkpoints until state_bytes or metadata_bytes reach --limit, at the growth since the oldest checkpoint that is remembered; 0: reached, +Inf: never.")
	m.limitSeconds = gauge("spt_checkpoint_limit_seconds", with(jobLabels, "quantity"), "The same in seconds.")
	m.directories = gauge("spt_job_checkpoint_directories", jobLabels, "Directories chk-N of the job, whether complete or not.")
	m.damaged = gauge("spt_job_damaged_checkpoints", jobLabels, "Directories of the job with a _metadata that cannot be read.")
	m.firing = gauge("spt_rule_firing", with(jobLabels, "rule"), "1 if the rule holds for the newest checkpoint, else 0.")
	m.bytes = gauge("spt_state_bytes", stateLabels, "Bytes of a state in the newest checkpoint.")
	m.inline = gauge("spt_state_inline_bytes", stateLabels, "Bytes of a state that are inline in _metadata.")
	m.elements = gauge("spt_state_elements", stateLabels, "Elements of list, union and raw state; replicas of broadcast state.")
	m.stateLimit = gauge("spt_state_limit_checkpoints", with(stateLabels, "quantity"), "Checkpoints until the bytes or elements of a state reach --limit or --limit-elements; 0: reached, +Inf: never.")
	m.unionRestore = gauge("spt_union_restore_bytes", stateLabels, "Bytes that a restore loads into all subtasks together, for union state.")
	m.unionGrowth = gauge("spt_union_growth_ratio", stateLabels, "Elements of a union state divided by its elements in the oldest checkpoint that is remembered.")
	m.unionDouble = gauge("spt_union_may_be_multiplied", stateLabels, "1 for union state that restores may have multiplied, else 0.")
	m.orphanFiles = gauge("spt_orphan_files", rootLabels, "Files below the root that no snapshot refers to and that can be removed, with --orphans-every.")
	m.orphanBytes = gauge("spt_orphan_bytes", rootLabels, "Bytes of these files.")
	m.reads = counter("spt_watch_checkpoints_read_total", rootLabels, "Checkpoints that were read.")
	m.errors = counter("spt_watch_errors_total", with(rootLabels, "reason"), "What could not be done: damaged checkpoints, failed requests to list directories or to read, failed searches for orphans.")
	m.success = gauge("spt_watch_last_success_timestamp_seconds", rootLabels, "When the root was last looked at without an error, in seconds since 1970; 0: never.")
	m.webhooks = counter("spt_watch_webhook_total", []string{"outcome"}, "Events for the webhook that were sent, that failed after all attempts, or that were dropped because too many were waiting.")
	m.dropped = gauge("spt_watch_dropped_series", nil, "Series that are left out because of --max-series, at least.")
	return m
}

// Metrics returns all metrics, in the order of the documentation.
func Metrics() []*Metric { return newMetrics().all }
