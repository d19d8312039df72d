// Package diff compares two savepoints in any containers.
//
//	result, err := diff.Savepoints(ctx, a, b, diff.Options{})
//	for _, d := range result.Differences {
//		fmt.Println(d.Kind, d.Text)
//	}
//
// Elements of operator state are compared as multisets. Keyed state is compared by its
// bytes, and where these differ by its entries: by key, in any two encodings.
package diff
