package tempname_test

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/tempname"
)

func TestTempName(t *testing.T) {
	for _, name := range []string{"a/b/_metadata", "_metadata", "/x", "a/" + strings.Repeat("ä", 120)} {
		temp := tempname.New(name)
		if !tempname.Is(temp) || !tempname.Is(temp+"/") || tempname.Is(name) || temp == tempname.New(name) {
			t.Errorf("%s: %s", name, temp)
		}
		dir := name[:strings.LastIndex(name, "/")+1]
		base, ok := strings.CutPrefix(temp, dir+tempname.Prefix)
		if !ok || strings.Contains(base, "/") || len(base) > 230 || !strings.HasPrefix(name[len(dir):], base[strings.Index(base, "-")+1:]) {
			t.Errorf("%s: %s", name, temp)
		}
	}
	if tempname.Is(".spt-tmp-1-x/y") {
		t.Error("a name in a temporary folder is not temporary itself")
	}
}

func TestAsideName(t *testing.T) {
	long := "a/" + strings.Repeat("ä", 120)
	for _, name := range []string{"a/b/sp", "sp", "/x", "a/.spt-tmp-000000000000-x", long} {
		aside := tempname.Aside(name)
		if !tempname.AsideOf(aside, name) || !tempname.AsideOf(aside+"/", name+"/") || tempname.AsideOf(aside, name+"x") && name != long || tempname.AsideOf(name, name) {
			t.Errorf("%s: %s", name, aside)
		}
		if _, ok := tempname.IsAside(aside); !ok || !tempname.IsOwn(aside) || tempname.Is(aside) || aside == tempname.Aside(name) {
			t.Errorf("%s: %s", name, aside)
		}
	}
	if base, ok := tempname.IsAside("x/.spt-old-0123456789ab-sp-1"); base != "sp-1" || !ok {
		t.Errorf("%q, %v", base, ok)
	}
	// What only looks like ours is not.
	for _, name := range []string{".spt-tmp-", ".spt-tmp-x", ".spt-old-0123456789ab", ".spt-old-0123456789ab-", ".spt-tmp-0123456789zz-x", ".spt-tmp-0123456789abx", "spt-tmp-0123456789ab-x", ".spt-tmp-0123456789ab-x/y"} {
		if tempname.IsOwn(name) {
			t.Errorf("%s is taken for ours", name)
		}
	}
}
