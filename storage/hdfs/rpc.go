package hdfs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// caller is a connection to the active NameNode, on which any method of Hadoop's
// ClientProtocol can be called. The functions of hdfs.Client are not enough: their
// rename always replaces, and their errors lose what the NameNode says.
type caller interface {
	Execute(method string, req, resp proto.Message) error
}

// callerOf returns the connection that a client has in an unexported field.
func callerOf(c *hdfs.Client) (caller, error) {
	if f := reflect.ValueOf(c).Elem().FieldByName("namenode"); f.IsValid() {
		if call, ok := reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Interface().(caller); ok {
			return call, nil
		}
	}
	return nil, errors.New("internal error: this release of the HDFS client has no connection to call")
}

// blockOf returns the variable in which a writer has its block. The client cannot repeat
// the request for a next block, which the NameNode refuses until the DataNodes have
// reported the last but one: it forgets the block that the request must name.
func blockOf(w *hdfs.FileWriter) (reflect.Value, error) {
	if f := reflect.ValueOf(w).Elem().FieldByName("blockWriter"); f.IsValid() {
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem(), nil
	}
	return reflect.Value{}, errors.New("internal error: this release of the HDFS client has no block of a writer")
}

// fields are the values of a message by the names of its fields.
type fields map[protoreflect.Name]any

// message makes a message of the package hadoop.hdfs. Its Go type is internal to the
// client, but registered.
func message(name protoreflect.Name, values fields) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName("hadoop.hdfs." + protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("internal error: the HDFS client has no message %s: %w", name, err)
	}
	m := t.New()
	for field, value := range values {
		d := m.Descriptor().Fields().ByName(field)
		if d == nil {
			return nil, fmt.Errorf("internal error: the message %s has no field %s", name, field)
		}
		if of, ok := value.(fields); ok {
			in := m.Mutable(d).Message()
			for f, v := range of {
				in.Set(in.Descriptor().Fields().ByName(f), protoreflect.ValueOf(v))
			}
			continue
		}
		m.Set(d, protoreflect.ValueOf(value))
	}
	return m.Interface(), nil
}

// rpc calls a method. The messages are named as in Hadoop: the method and the name with
// RequestProto and ResponseProto.
func (s *session) rpc(method string, name protoreflect.Name, values fields) (protoreflect.Message, error) {
	req, err := message(name+"RequestProto", values)
	if err != nil {
		return nil, err
	}
	resp, err := message(name+"ResponseProto", nil)
	if err != nil {
		return nil, err
	}
	if err := s.call.Execute(method, req, resp); err != nil {
		return nil, err
	}
	return resp.ProtoReflect(), nil
}

// field returns a field of a message.
func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

// status is what the NameNode says of a file or a directory.
type status struct {
	*hdfs.FileStatus
}

func (st status) isDir() bool     { return st.GetFileType().String() == "IS_DIR" }
func (st status) isFile() bool    { return st.GetFileType().String() == "IS_FILE" }
func (st status) time() time.Time { return time.UnixMilli(int64(st.GetModificationTime())) }

// writing reports whether the file is being written, if the status has the blocks.
func (st status) writing() bool { return st.GetLocations().GetUnderConstruction() }

// statusOf returns the status of a path; ok is false if it does not exist.
func (s *session) status(path string) (st status, ok bool, err error) {
	resp, err := s.rpc("getFileInfo", "GetFileInfo", fields{"src": path})
	if err != nil {
		return st, false, err
	}
	st.FileStatus = resp.Interface().(interface{ GetFs() *hdfs.FileStatus }).GetFs()
	return st, st.FileStatus != nil, nil
}

// entries returns a page of a directory after an entry, and whether more follow. ok is
// false if the directory does not exist.
func (s *session) entries(path string, after []byte, blocks bool) (all []status, more, ok bool, err error) {
	resp, err := s.rpc("getListing", "GetListing", fields{"src": path, "startAfter": after, "needLocation": blocks})
	if err != nil || !resp.Has(resp.Descriptor().Fields().ByName("dirList")) {
		return nil, false, false, err
	}
	page := field(resp, "dirList").Message()
	list := field(page, "partialListing").List()
	for i := range list.Len() {
		all = append(all, status{list.Get(i).Message().Interface().(*hdfs.FileStatus)})
	}
	return all, field(page, "remainingEntries").Uint() > 0, true, nil
}

// rename renames. It replaces a file, or an empty directory, only with overwrite.
func (s *session) rename(old, new string, overwrite bool) error {
	_, err := s.rpc("rename2", "Rename2", fields{"src": old, "dst": new, "overwriteDest": overwrite})
	return err
}

// remove deletes a file, or a directory, if it exists.
func (s *session) remove(path string, recursive bool) error {
	_, err := s.rpc("delete", "Delete", fields{"src": path, "recursive": recursive})
	return err
}

// mkdir makes a directory whose parent exists, unless it exists itself.
func (s *session) mkdir(path string, mode uint32) error {
	_, err := s.rpc("mkdirs", "Mkdirs", fields{"src": path, "masked": fields{"perm": mode}, "createParent": false})
	return err
}

// jitter returns between half and all of a pause.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}
