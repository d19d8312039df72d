package azure

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/savepoint-tools/spt/storage"
)

// maxSkew is the clock difference beyond which Azure refuses signed requests.
const maxSkew = 15 * time.Minute

// answer is what the service said about a failed request.
type answer struct {
	status        int
	code, message string
	kind          error // of package storage; nil if none fits
}

func (a *answer) Error() string {
	text := a.code
	if text == "" {
		text = http.StatusText(a.status)
	}
	text = fmt.Sprintf("%d %s", a.status, text)
	if a.message != "" {
		text += ": " + a.message
	}
	return text
}

func (a *answer) Unwrap() error { return a.kind }

// explanation is what the codes mean that need one.
type explanation struct {
	kind    error
	hint    string
	setting storage.Setting
}

var explanations = map[bloberror.Code]explanation{
	bloberror.BlobNotFound:             {kind: storage.ErrNotExist},
	bloberror.ResourceNotFound:         {kind: storage.ErrNotExist},
	bloberror.ContainerNotFound:        {kind: storage.ErrNotExist, hint: "the container does not exist in this account: check both names"},
	bloberror.ContainerBeingDeleted:    {kind: storage.ErrNotExist},
	bloberror.BlobAlreadyExists:        {kind: storage.ErrExist},
	bloberror.ConditionNotMet:          {kind: storage.ErrChanged},
	bloberror.TargetConditionNotMet:    {kind: storage.ErrChanged},
	bloberror.SourceConditionNotMet:    {kind: storage.ErrChanged},
	bloberror.LeaseIDMissing:           {kind: storage.ErrPermission, hint: "another program holds a lease of the object: wait until it ends, or break it"},
	bloberror.BlobArchived:             {kind: storage.ErrUnsupported, hint: "the object is in the archive tier: rehydrate it first"},
	bloberror.BlobBeingRehydrated:      {kind: storage.ErrUnsupported, hint: "the object is being moved out of the archive tier: wait until that ends"},
	bloberror.SnapshotsPresent:         {kind: storage.ErrPermission, hint: "the object has snapshots: delete them first"},
	bloberror.AccountIsDisabled:        {kind: storage.ErrPermission},
	bloberror.UnsupportedHeader:        {kind: storage.ErrUnsupported},
	bloberror.InvalidBlobOrBlock:       {hint: "another program has unfinished blocks under this name; Azure removes them after a week"},
	bloberror.InvalidBlockList:         {kind: storage.ErrChanged, hint: "another program wrote the object in the meantime"},
	bloberror.BlobImmutableDueToPolicy: {kind: storage.ErrPermission, hint: "a policy of the container keeps the object from being changed"},

	bloberror.AuthenticationFailed:            {storage.ErrPermission, "the key, the signature or the token is wrong or has expired", storage.SettingCredentials},
	bloberror.InvalidAuthenticationInfo:       {storage.ErrPermission, "the key, the signature or the token is wrong or has expired", storage.SettingCredentials},
	bloberror.NoAuthenticationInformation:     {storage.ErrPermission, "the container is not public, and no credentials were sent", storage.SettingCredentials},
	bloberror.AuthorizationPermissionMismatch: {storage.ErrPermission, "the identity needs the role Storage Blob Data Reader to read and list, Storage Blob Data Contributor to write and delete; a shared access signature needs the permissions r, l, c, w and d", storage.SettingCredentials},
	bloberror.AuthorizationFailure:            {storage.ErrPermission, "the network rules of the account may not allow this machine, or the credentials not this operation", storage.SettingCredentials},
	bloberror.InsufficientAccountPermissions:  {storage.ErrPermission, "", storage.SettingCredentials},
	"KeyBasedAuthenticationNotPermitted":      {storage.ErrPermission, "the account does not allow keys: use an identity", storage.SettingCredentials},
	"PublicAccessNotPermitted":                {storage.ErrPermission, "the account does not allow anonymous access", storage.SettingCredentials},
}

// explain turns an error of the SDK into one of a store. What it does not recognize
// came from the network.
func explain(ctx context.Context, op, name string, err error) error {
	e := &storage.Error{Op: op, Name: name}
	if ended := ctx.Err(); ended != nil { // not err: an expired time of a connection looks like this too
		e.Err = ended
		return e
	}
	var done *storage.Error
	if errors.As(err, &done) {
		return done
	}
	var refused *azcore.ResponseError
	var token *azidentity.AuthenticationFailedError
	var never interface{ NonRetriable() }
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		a := read(refused)
		x := explanations[bloberror.Code(a.code)]
		a.kind, e.Hint, e.Setting = x.kind, x.hint, x.setting
		if a.kind == nil {
			a.kind = kindOf(a.status)
		}
		if errors.Is(a.kind, storage.ErrPermission) && e.Setting == "" && e.Hint == "" {
			e.Setting = storage.SettingCredentials
		}
		e.Err = a
		if skewed(e, refused.RawResponse) {
			e.Setting = storage.SettingClock
		}
	case errors.As(err, &token):
		e.Err = fmt.Errorf("no token from Microsoft Entra: %s: %w", tokenMessage(token), storage.ErrPermission)
		e.Hint, e.Setting = "check the tenant, the client and its secret", storage.SettingCredentials
	case errors.As(err, &never):
		e.Err = fmt.Errorf("%s: %w", line(err.Error()), storage.ErrPermission)
		e.Setting = storage.SettingCredentials
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Err = fmt.Errorf("host %s not found: %w", dns.Name, storage.ErrUnavailable)
		e.Hint, e.Setting = "check the name of the account", storage.SettingEndpoint
	default:
		e.Err = fmt.Errorf("%s: %w", network(err), storage.ErrUnavailable)
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
			e.Hint, e.Setting = "check the endpoint and the network", storage.SettingEndpoint
		}
	}
	return e
}

// kindOf returns the kind of an error whose code is not in explanations.
func kindOf(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return storage.ErrPermission
	case http.StatusNotFound:
		return storage.ErrNotExist
	case http.StatusPreconditionFailed:
		return storage.ErrChanged
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return storage.ErrUnsupported
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return storage.ErrUnavailable
	}
	if status >= 500 {
		return storage.ErrUnavailable
	}
	return nil
}

// read reads the answer of the service. An answer to HEAD has only a code. Of the
// message, the first line is for people; details may quote signatures.
func read(refused *azcore.ResponseError) *answer {
	a := &answer{status: refused.StatusCode, code: refused.ErrorCode}
	if refused.RawResponse == nil {
		return a
	}
	body, err := runtime.Payload(refused.RawResponse)
	if err != nil {
		return a
	}
	var said struct{ Code, Message string }
	if xml.Unmarshal([]byte(strings.TrimPrefix(string(body), "\ufeff")), &said) == nil {
		a.message = line(said.Message)
		if a.code == "" {
			a.code = said.Code
		}
	}
	return a
}

// skewed puts both times into the error if the clocks are too different for
// signatures.
func skewed(e *storage.Error, resp *http.Response) bool {
	if resp == nil || !errors.Is(e.Err, storage.ErrPermission) {
		return false
	}
	there, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return false
	}
	here := time.Now()
	if here.Sub(there).Abs() < maxSkew {
		return false
	}
	e.Hint = fmt.Sprintf("it is %s on this machine and %s at the service: the clocks may differ by %v at most",
		here.UTC().Format(time.RFC3339), there.UTC().Format(time.RFC3339), maxSkew)
	return true
}

// tokenMessage returns what the token service said.
func tokenMessage(err *azidentity.AuthenticationFailedError) string {
	if err.RawResponse != nil {
		var said struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		if body, rerr := runtime.Payload(err.RawResponse); rerr == nil && json.Unmarshal(body, &said) == nil && said.Error != "" {
			return strings.TrimSuffix(said.Error+": "+line(said.Description), ": ")
		}
		return fmt.Sprintf("%d %s", err.RawResponse.StatusCode, http.StatusText(err.RawResponse.StatusCode))
	}
	return line(err.Error())
}

// network returns the text of an error of the network without the URL, which may
// have a signature.
func network(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return line(err.Error())
}

// line returns the first line of a text.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return signature.ReplaceAllString(strings.TrimSpace(text), "${1}…")
}

// signature matches the secret of a shared access signature that a text quotes.
var signature = regexp.MustCompile(`(?i)(\bsig=)[^&\s'"]+`)
