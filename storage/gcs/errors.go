package gcs

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
)

var (
	errNoBucket = fmt.Errorf("the bucket does not exist: %w", storage.ErrNotExist)
	errRefused  = errors.New("invalid request")
)

// maxMessage is how much of the service's message an error has, in bytes.
const maxMessage = 500

// explain returns the error of an answer: the service's own reason and message.
func explain(status int, header http.Header, body []byte) *storage.Error {
	reason, message := reasonOf(status, body)
	said := fmt.Sprintf("%d %s", status, reason)
	if message != "" {
		said += ": " + message
	}
	wrap := func(kind error) error { return fmt.Errorf("%s: %w", said, kind) }
	e := &storage.Error{}
	switch {
	case status == http.StatusNotFound && noBucket(reason, message):
		e.Err, e.Hint = wrap(errNoBucket), "check the name of the bucket"
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Err = wrap(storage.ErrNotExist)
	case status == http.StatusPreconditionFailed:
		e.Err = wrap(storage.ErrChanged)
	case status == http.StatusForbidden && strings.Contains(strings.ToLower(reason), "ratelimitexceeded"):
		e.Err = wrap(storage.ErrUnavailable)
	case status == http.StatusUnauthorized:
		e.Err, e.Setting = wrap(storage.ErrPermission), storage.SettingCredentials
		e.Hint = "the credentials are missing, wrong or expired"
		if skew := clockOf(header); skew != "" {
			e.Hint, e.Setting = skew, storage.SettingClock
		}
	case status == http.StatusForbidden:
		e.Err, e.Setting = wrap(storage.ErrPermission), storage.SettingCredentials
		e.Hint = "the account needs the role Storage Object Viewer on the bucket to read, Storage Object User to write"
	case plainhttp.Unavailable(status):
		e.Err = wrap(storage.ErrUnavailable)
	case status >= 300 && status < 400:
		e.Err, e.Setting = wrap(storage.ErrUnsupported), storage.SettingEndpoint
		e.Hint = "the endpoint redirects, which Google Cloud Storage does not"
	default:
		e.Err = wrap(errRefused)
	}
	return e
}

// explainBucket is explain for requests that need no object: only the bucket can be
// missing.
func explainBucket(status int, header http.Header, body []byte) *storage.Error {
	e := explain(status, header, body)
	if errors.Is(e.Err, storage.ErrNotExist) && !errors.Is(e.Err, errNoBucket) {
		e.Err, e.Hint = fmt.Errorf("%d %s: %w", status, http.StatusText(status), errNoBucket), "check the name of the bucket"
	}
	return e
}

func noBucket(reason, message string) bool {
	return reason == "NoSuchBucket" || strings.Contains(message, "bucket does not exist")
}

// reasonOf returns the reason and the message of a body: JSON, XML or text.
func reasonOf(status int, body []byte) (reason, message string) {
	var j struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	var x struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
		Details string `xml:"Details"`
	}
	switch text := strings.TrimSpace(string(body)); {
	case json.Unmarshal(body, &j) == nil && j.Error.Message != "":
		message = j.Error.Message
		if len(j.Error.Errors) > 0 {
			reason = j.Error.Errors[0].Reason
		}
	case strings.HasPrefix(text, "<?xml") && xml.Unmarshal(body, &x) == nil && x.Code != "":
		reason, message = x.Code, x.Message
		if x.Details != "" {
			message += " " + x.Details
		}
	case !strings.HasPrefix(text, "<") && !strings.HasPrefix(text, "{"):
		message = text
	}
	if reason == "" {
		reason = http.StatusText(status)
	}
	return plainhttp.Clean(reason), shorten(plainhttp.Clean(message))
}

func shorten(text string) string {
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// skewed is the difference of clocks from which tokens are refused.
const skewed = 5 * time.Minute

// clockOf compares the clocks by an answer. It returns "" if they agree.
func clockOf(header http.Header) string {
	now := time.Now()
	theirs, err := http.ParseTime(header.Get("Date"))
	if err != nil || theirs.Sub(now).Abs() < skewed {
		return ""
	}
	const form = "2006-01-02 15:04:05 MST"
	return fmt.Sprintf("the clock of this machine is wrong: it says %s, the service says %s", now.UTC().Format(form), theirs.UTC().Format(form))
}
