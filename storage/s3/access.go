package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/savepoint-tools/spt/storage"
)

// AtomicConditions implements storage.ConditionReporter. It is false for Alibaba Cloud
// OSS, and with Options.LookFirst.
func (s *Store) AtomicConditions(string) bool { return !s.o.OSS && !s.o.LookFirst }

// Access implements storage.AccessReporter. It lists one name of the bucket: an answer,
// whatever it is, has the service's clock, and can name the region. It is an error only
// if there is no answer, or if credentials could not be found; what is known is
// returned even then.
func (s *Store) Access(ctx context.Context, name string) (storage.Access, error) {
	a := storage.Access{Service: "S3"}
	if s.o.OSS {
		a.Service = "Alibaba Cloud OSS"
	}
	b, _, err := s.locate("access", name)
	if err != nil {
		return a, err
	}
	src := s.find.source(b.set)
	a.Credentials = src.what
	a.Endpoint = b.set.endpoint.String()
	_, err = b.page(ctx, "", "", "", 1)
	if v, verr := b.creds.GetWithContext(&credentials.CredContext{Context: ctx}); verr == nil && v.AccessKeyID != "" {
		a.Identity = "access key " + v.AccessKeyID
		if as, ok := src.Provider.(*assumed); ok {
			a.Identity = "role " + as.o.RoleARN
		}
	}
	_, a.Region, _ = b.client() //nolint:errcheck // its settings were checked
	a.Details = append(a.Details, "endpoint: "+b.set.endpointFrom)
	from := b.set.regionFrom
	if a.Region != b.set.region {
		from = fmt.Sprintf("named by the service, instead of %s (%s)", b.set.region, from)
	}
	a.Details = append(a.Details, "region: "+from)
	style := "by host"
	if b.set.pathStyle() {
		style = "by path"
	}
	a.Details = append(a.Details, "buckets addressed "+style)
	if b.set.sse != nil {
		kind := "with keys of S3"
		if b.set.sse.Type() == encrypt.KMS {
			kind = "with a key of KMS"
		}
		a.Details = append(a.Details, "objects are encrypted "+kind)
	}
	if !s.AtomicConditions(name) {
		a.Details = append(a.Details, "objects are looked up before they are created: another writer can come in between")
	}
	if s.transport.clocked.Load() {
		a.Clock, a.Clocked = time.Duration(s.transport.ahead.Load()).Round(time.Second), true
	}
	if err != nil && status(err) == 0 {
		return a, err
	}
	return a, nil
}
