// Package azure is the driver for Azure Blob Storage and Data Lake Storage: the
// schemes abfs:, abfss:, wasb: and wasbs:, which all name the same objects. It
// speaks the Blob protocol, over TLS, whatever the scheme.
//
//	s := azure.New(azure.Options{})
//	store, name, err := s.Resolve(ctx, "wasbs://state@prod.blob.core.windows.net/sp/_metadata")
//	// s, "abfss://state@prod.dfs.core.windows.net/sp/_metadata"
//
// # Requests
//
// A read is one ranged GET. Azure does not have ranges that count from the end, and
// its answer for a range past the end does not have the ETag: such a read first
// asks for the properties, which makes two requests. An object of at most one part is
// written by one Put Blob; a larger one by Put Block and one Put Block List. IfAbsent
// and Replace are conditions of the last request, so they are atomic. Copies within
// an account are one Copy Blob From URL for up to 256 MiB, and Put Block From URL for
// larger objects and ranges. A server that has neither gets the bytes through this
// process.
//
// Blocks that were sent before an upload failed are not visible; Leftovers yields them.
// No request removes them; Azure does after a week.
//
// # Hierarchical namespaces
//
// An account with a hierarchical namespace has directories, which the Blob protocol
// shows as empty blobs with the metadata hdi_isfolder; the older WASB driver writes
// such blobs too. They are not objects: lists do not have them and reads return
// storage.ErrNotExist. A List with a delimiter may yield the prefix of an empty
// directory.
//
// # Credentials
//
// The first that is set is used: Options.Anonymous;
// AZURE_STORAGE_CONNECTION_STRING; AZURE_STORAGE_KEY with AZURE_STORAGE_ACCOUNT;
// AZURE_STORAGE_SAS_TOKEN; Options.Config; the service principal of
// AZURE_TENANT_ID and AZURE_CLIENT_ID with AZURE_CLIENT_SECRET,
// AZURE_CLIENT_CERTIFICATE_PATH or AZURE_FEDERATED_TOKEN_FILE; the managed identity
// of the machine; the Azure CLI. What is set for one account is not used for others,
// and neither tokens nor signatures are sent to hosts that are not Azure's, unless
// Options.Endpoint names them.
package azure
