package s3

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/minio/minio-go/v7"

	"github.com/savepoint-tools/spt/storage"
)

// errorBody is the body of an answer that refuses a request.
type errorBody struct {
	XMLName                 xml.Name `xml:"Error"`
	Code                    string
	RequestTime, ServerTime string
}

func parseError(text []byte) (e errorBody, ok bool) {
	if !bytes.Contains(text, []byte("<Error")) {
		return e, false
	}
	return e, xml.Unmarshal(text, &e) == nil
}

// cause is what an error code means.
type cause struct {
	kind    error
	setting storage.Setting
	hint    string
}

// causes are the codes with a meaning of their own. For others the status decides.
var causes = map[string]cause{
	"NoSuchKey":             {storage.ErrNotExist, "", ""},
	"NoSuchUpload":          {storage.ErrNotExist, "", ""},
	"NoSuchBucket":          {storage.ErrNotExist, storage.SettingEndpoint, "check the name of the bucket, and that this is the service that has it"},
	"InvalidBucketName":     {storage.ErrUnsupported, "", "check the name of the bucket"},
	"AllAccessDisabled":     {storage.ErrPermission, "", ""},
	"AccessDenied":          {storage.ErrPermission, storage.SettingCredentials, "check what these credentials may do; without the permission to list the bucket, a missing object is refused in the same way"},
	"InvalidAccessKeyId":    {storage.ErrPermission, storage.SettingCredentials, "the service does not know this access key: check that key and endpoint belong together"},
	"SignatureDoesNotMatch": {storage.ErrPermission, storage.SettingCredentials, "the secret key does not belong to the access key"},
	"ExpiredToken":          {storage.ErrPermission, storage.SettingCredentials, "the session has expired: get new credentials"},
	"ExpiredTokenException": {storage.ErrPermission, storage.SettingCredentials, "the session has expired: get new credentials"},
	"TokenRefreshRequired":  {storage.ErrPermission, storage.SettingCredentials, "the session has expired: get new credentials"},
	"InvalidToken":          {storage.ErrPermission, storage.SettingCredentials, "the session token does not belong to the access key"},
	"RequestTimeTooSkewed":  {storage.ErrPermission, storage.SettingClock, "set the clock of this machine"},
	"RequestExpired":        {storage.ErrPermission, storage.SettingClock, "set the clock of this machine"},

	"AuthorizationHeaderMalformed":       {storage.ErrPermission, storage.SettingRegion, "state the region of the bucket"},
	"PermanentRedirect":                  {storage.ErrUnsupported, storage.SettingRegion, "state the region of the bucket, or the endpoint that has it"},
	"TemporaryRedirect":                  {storage.ErrUnavailable, storage.SettingRegion, "the bucket is new: try again later, or state its region"},
	"IllegalLocationConstraintException": {storage.ErrUnsupported, storage.SettingRegion, "state the region of the bucket"},

	"PreconditionFailed":             {storage.ErrChanged, "", ""},
	"ConditionalRequestConflict":     {storage.ErrUnavailable, "", ""},
	"OperationAborted":               {storage.ErrUnavailable, "", ""},
	"InvalidObjectState":             {storage.ErrUnsupported, "", "the object is archived: restore it to a storage class that can be read"},
	"ObjectNotInActiveTierError":     {storage.ErrUnsupported, "", "the object is archived: restore it to a storage class that can be read"},
	"NotImplemented":                 {storage.ErrUnsupported, "", ""},
	"MethodNotAllowed":               {storage.ErrUnsupported, "", ""},
	"QuotaExceeded":                  {storage.ErrNoSpace, "", ""},
	"XMinioStorageFull":              {storage.ErrNoSpace, "", ""},
	"XMinioAdminBucketQuotaExceeded": {storage.ErrNoSpace, "", ""},

	"SlowDown": {storage.ErrUnavailable, "", ""}, "RequestTimeout": {storage.ErrUnavailable, "", ""}, "RequestTimeTooLong": {storage.ErrUnavailable, "", ""},
	"InternalError": {storage.ErrUnavailable, "", ""}, "Throttling": {storage.ErrUnavailable, "", ""}, "ThrottlingException": {storage.ErrUnavailable, "", ""},
	"RequestThrottled": {storage.ErrUnavailable, "", ""}, "RequestLimitExceeded": {storage.ErrUnavailable, "", ""},
	"BadDigest": {storage.ErrUnavailable, "", ""}, "XAmzContentSHA256Mismatch": {storage.ErrUnavailable, "", ""}, // damaged on the way
}

func byStatus(status int) cause {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return causes["AccessDenied"]
	case status == http.StatusNotFound:
		return cause{kind: storage.ErrNotExist}
	case status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed:
		return cause{kind: storage.ErrUnsupported}
	case status == http.StatusPreconditionFailed || status == http.StatusNotModified:
		return cause{kind: storage.ErrChanged}
	case status == http.StatusInsufficientStorage:
		return cause{kind: storage.ErrNoSpace}
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status == http.StatusConflict:
		return cause{kind: storage.ErrUnavailable}
	case status == http.StatusMovedPermanently:
		return causes["PermanentRedirect"]
	}
	return cause{}
}

// answered is an error that the service answered with.
type answered struct {
	code, message string
	status        int
	kind          error
}

func (e *answered) Error() string {
	text := e.code
	if e.message != "" && e.message != e.code {
		text += ": " + strings.TrimSuffix(e.message, ".")
	}
	if e.status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.status)
	}
	if errors.Is(e.kind, storage.ErrChanged) {
		text += ": " + e.kind.Error()
	}
	return text
}

func (e *answered) Unwrap() error { return e.kind }

// code returns the error code of an answer; "" if it was not answered.
func code(err error) string {
	var a *answered
	if errors.As(err, &a) {
		return a.code
	}
	return ""
}

func status(err error) int {
	var a *answered
	if errors.As(err, &a) {
		return a.status
	}
	return 0
}

// fail turns an error of the client into one of a store.
func (b *bucket) fail(ctx context.Context, op, key string, c *call, err error) error {
	e := &storage.Error{Op: op, Name: b.uri(key)}
	var ours *storage.Error
	var answer minio.ErrorResponse
	switch {
	case ctx.Err() != nil:
		e.Err = ctx.Err()
	case errors.As(err, &ours):
		return err
	case c.err != nil:
		b.failNetwork(e, c.err)
	case errors.As(err, &answer) && (c.sent || answer.StatusCode != 0):
		b.failAnswer(e, c, answer)
	case c.sent: // an answer that cannot be read, such as a page that is not XML
		e.Err = fmt.Errorf("the answer is not one of S3: %w: %w", b.s.clean(err), storage.ErrUnavailable)
		e.Setting, e.Hint = storage.SettingEndpoint, "check that the endpoint is an S3 service"
		if c.status == http.StatusOK {
			e.Err = fmt.Errorf("the answer is not one of S3: %w", b.s.clean(err))
		}
	default: // it was not sent
		e.Err = b.s.clean(err)
		if errors.As(err, new(*credentialsError)) {
			e.Setting = storage.SettingCredentials
		}
	}
	return e
}

func (b *bucket) failNetwork(e *storage.Error, err error) {
	e.Setting = storage.SettingEndpoint
	where := b.set.endpoint.Host
	err = b.s.clean(network(err))
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError // the service does not speak TLS
	if errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) || errors.As(err, &plain) {
		e.Err = fmt.Errorf("%s: %w", where, err)
		e.Hint = "check the scheme and the certificate of the endpoint"
		if errors.As(err, &host) && !b.set.pathStyle() {
			e.Setting, e.Hint = storage.SettingAddressing, "if the certificate does not cover the bucket's own host, use path style addresses"
		}
		return
	}
	e.Err = fmt.Errorf("%s: %w: %w", where, err, storage.ErrUnavailable)
	e.Hint = "check the endpoint and the network"
}

func (b *bucket) failAnswer(e *storage.Error, c *call, answer minio.ErrorResponse) {
	why, ok := causes[answer.Code]
	if !ok {
		why = byStatus(c.status)
	}
	message := printable(b.s.scrub(answer.Message))
	if c.skewed != "" {
		message = strings.TrimSuffix(message, ".") + ": " + c.skewed
	} else if why.setting == storage.SettingClock && !c.served.IsZero() {
		message += fmt.Sprintf(": this machine's clock said %s, the service's %s", c.asked.UTC().Format(time.RFC3339), c.served.UTC().Format(time.RFC3339))
	}
	e.Err = &answered{code: printable(answer.Code), message: message, status: c.status, kind: why.kind}
	e.Setting, e.Hint = why.setting, why.hint
	if answer.Region != "" && wrongRegion(answer) {
		_, region, _ := b.client() //nolint:errcheck // it worked before
		e.Hint = fmt.Sprintf("the service expects the region %q, the request was for %q", printable(answer.Region), region)
		e.Setting = storage.SettingRegion
	}
}

// printable makes a text of a service fit for a message.
func printable(text string) string {
	const most = 300
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// scrubbed is an error whose text held a secret.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// clean returns an error whose text has no secret of the store.
func (s *Store) clean(err error) error {
	if text := err.Error(); s.scrub(text) != text {
		return &scrubbed{s.scrub(text), err}
	}
	return err
}
