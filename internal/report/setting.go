package report

import (
	"errors"
	"strings"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// settings are the flags and variables by which a setting is made, by service; "" is
// for any.
var settings = map[storage.Setting]map[string]string{
	storage.SettingCredentials: {
		"s3":  "--profile NAME, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, --flink-conf FILE, or --no-sign-request",
		"oss": "OSS_ACCESS_KEY_ID and OSS_ACCESS_KEY_SECRET, or --flink-conf FILE",
	},
	storage.SettingEndpoint:   {"s3": "--endpoint-url URL", "oss": "--endpoint-url URL, OSS_ENDPOINT, or --flink-conf FILE"},
	storage.SettingRegion:     {"s3": "--region REGION", "oss": "--region REGION"},
	storage.SettingAddressing: {"s3": "--s3-addressing path or host"},
	storage.SettingConditions: {"s3": "--s3-look-first"},
	storage.SettingHadoop:     {"": "HADOOP_CONF_DIR"},
}

// Setting returns how the user can make the setting that an error of a store is about;
// "" if it is about none.
func Setting(err error) string {
	var of *storage.Error
	if !errors.As(err, &of) || of.Setting == "" {
		return ""
	}
	scheme, _ := objpath.Split(of.Name)
	if strings.HasPrefix(scheme, "s3") {
		scheme = "s3"
	}
	by := settings[of.Setting]
	if text := by[scheme]; text != "" {
		return text
	}
	return by[""]
}
