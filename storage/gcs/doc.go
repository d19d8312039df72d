// Package gcs is the driver of Google Cloud Storage, for URIs gs://BUCKET/KEY.
//
// It makes the requests itself, over net/http: reads through the XML API, whose
// answers hold everything that describes the object, everything else through the JSON
// API. Credentials come from golang.org/x/oauth2/google. The official client would be
// larger than the whole program.
//
// The version of an object is its generation. Creation and replacement are conditional
// on it, so they are atomic; a copy within the service is a rewrite, of whole objects
// only. Times are in whole seconds, as some answers have no others.
package gcs
