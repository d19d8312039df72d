package command

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
)

// Version is set by the build of a release.
var Version = ""

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
	r := &report.Version{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, SPT: "1.0"}
	r.Version, r.Revision = build()
	for v := metadata.V2; v.Valid(); v++ {
		r.Metadata = append(r.Metadata, int(v))
	}
	return env.answer(r)
}
