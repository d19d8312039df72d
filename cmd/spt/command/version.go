package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/cobra"
)

// Version is set by the build of a release.
var Version = ""

// VersionResult is the answer of version.
type VersionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Metadata []int  `json:"metadata_versions" jsonschema:"description=versions of _metadata that are read"`
	SPT      string `json:"spt_version" jsonschema:"description=version of the .spt format that is written"`
}

func newVersionCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of spt and of the formats it reads",
		Args:  exactly(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return runVersion(env) },
	}
}

// build is the version, and the revision it was made from where that is known.
func build() (version, revision string) {
	version = Version
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if version == "" || version == "(devel)" {
		version = "development build"
	}
	return version, revision
}

func runVersion(env *Env) error {
	r := VersionResult{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, SPT: "1.0"}
	r.Version, r.Revision = build()
	for v := metadata.V2; v.Valid(); v++ {
		r.Metadata = append(r.Metadata, int(v))
	}
	switch env.common.output {
	case ui.OutputJSON:
		return ui.JSON(env.Stdout, r)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		if err := l.Encode(r); err != nil {
			return err
		}
		return l.Flush()
	}
	_, err := fmt.Fprintf(env.Stdout, "spt %s (%s, %s)\nreads _metadata %s to %s (Flink 1.3–2.3) and .spt 1; writes .spt %s\n", r.Version, r.Go, r.Platform, metadata.V2, metadata.Latest, r.SPT)
	return err
}
