// Package s3 is the store of objects of S3 and of the services that speak its
// protocol. One Store has all buckets: it names objects "s3://bucket/key", whichever of
// the schemes s3, s3a and s3p they are asked for by. With Options.OSS it is the store
// of Alibaba Cloud OSS, "oss://bucket/key".
//
//	s, err := s3.New(s3.Options{Region: "eu-central-1"})
//	store, name, err := s.Resolve(ctx, "s3a://bucket/savepoints/sp-1/_metadata")
//
// # Writes
//
// An object of at most one part is one PUT, a larger one a multipart upload. With
// CreateOptions.IfAbsent the request that makes the object visible has the header
// If-None-Match, with Replace If-Match: the service decides. Each object has a random
// text in the metadata "spt-write". If an answer is lost, it tells whether the object
// that is there now is the one that was written.
//
// A service that refuses these headers (501) gets storage.ErrUnsupported, before
// anything is written. Alibaba Cloud OSS refuses them: there the object is looked up
// first and then written, and another writer can come in between; see Conditional.
//
// # Versions
//
// The Version of an object is its ETag, in most cases a checksum of the content: an
// object that is written again with the same bytes can have the same version. The
// answer to a write has no time of modification: then ModTime of the Info that Commit
// returns is zero.
package s3
