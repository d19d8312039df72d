package each_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/storage/internal/each"
)

func TestName(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("%02d", i))
	}
	var mu sync.Mutex
	var done []string
	err := each.Name(names, func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, name)
		if strings.HasSuffix(name, "7") {
			return errors.New(name)
		}
		return nil
	})
	slices.Sort(done)
	if !slices.Equal(done, names) {
		t.Errorf("done for %q", done)
	}
	if err == nil || err.Error() != "07\n17\n27\n37\n47\n57\n67\n77\n87\n97" {
		t.Errorf("%v", err)
	}
	if err := each.Name(nil, nil); err != nil {
		t.Error(err)
	}
}
