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
		azure: "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_SAS_TOKEN, az login, --flink-conf FILE, or --no-sign-request",
	},
	storage.SettingEndpoint:   {"s3": "--endpoint-url URL", "oss": "--endpoint-url URL, OSS_ENDPOINT, or --flink-conf FILE", azure: "AZURE_STORAGE_BLOB_ENDPOINT"},
	storage.SettingRegion:     {"s3": "--region REGION", "oss": "--region REGION"},
	storage.SettingAddressing: {"s3": "--s3-addressing path or host"},
	storage.SettingConditions: {"s3": "--s3-look-first"},
	storage.SettingHadoop:     {"": "HADOOP_CONF_DIR"},
}

const azure = "abfss"

// Setting returns how the user can make the setting that an error of a store is about;
// "" if it is about none.
func Setting(err error) string {
	var of *storage.Error
	if !errors.As(err, &of) || of.Setting == "" {
		return ""
	}
	scheme, _ := objpath.Split(of.Name)
	switch {
	case strings.HasPrefix(scheme, "s3"):
		scheme = "s3"
	case strings.HasPrefix(scheme, "abfs"), strings.HasPrefix(scheme, "wasb"):
		scheme = azure
	}
	by := settings[of.Setting]
	if text := by[scheme]; text != "" {
		return text
	}
	return by[""]
}
