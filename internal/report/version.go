package report

import (
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Version is the answer of version.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Metadata []int  `json:"metadata_versions" jsonschema:"description=versions of _metadata that are read"`
	SPT      string `json:"spt_version" jsonschema:"description=version of the .spt format that is written"`
}

// Document implements [Report].
func (v *Version) Document() *ui.Document {
	var d ui.Document
	d.Line("spt %s (%s, %s)", v.Version, v.Go, v.Platform)
	d.Line("reads _metadata v%d to v%d (Flink %v–%v) and .spt 1; writes .spt %s", v.Metadata[0], v.Metadata[len(v.Metadata)-1], flink.Oldest(), flink.Latest(), v.SPT)
	return &d
}
