package spt.connectors.other;

import com.amazonaws.services.s3.model.PartETag;
import java.util.Collection;
import java.util.List;
import org.apache.flink.connector.file.sink.FileSinkCommittable;
import org.apache.flink.connector.file.sink.FileSinkCommittableSerializer;
import org.apache.flink.core.fs.Path;
import spt.connectors.Json;
import spt.connectors.Kinds;
import spt.connectors.Reflect;
import spt.connectors.Sinks;

/** File sinks on S3, by each of Flink's file systems for it that can write to it. */
public final class FileSystems implements Kinds.Catalogue {
    private static final String S3 = "org.apache.flink.fs.s3.common.writer.S3Recoverable";
    private static final String NATIVE = "org.apache.flink.fs.s3native.writer.NativeS3Recoverable";

    @Override
    public void addTo(Kinds kinds) throws Exception {
        Object part = Reflect.make(NATIVE + "$PartETag", 1, "etag-ü");
        add(kinds, new Sinks.FileSystem(Reflect.serializer(NATIVE + "Serializer"), FileSystems::nativeS3), List.of(
                Reflect.make(NATIVE, "out/part-ü", "upload", List.of(part, part), 5L), Reflect.make(NATIVE, "", "", List.of(), Long.MAX_VALUE, "out/.part-1", 3L)));
        PartETag old = new PartETag(1, "etag-ü");
        add(kinds, new Sinks.FileSystem(Reflect.serializer(S3 + "Serializer"), FileSystems::s3), List.of(
                Reflect.make(S3, "out/part-ü", "upload", List.of(old, old), 5L), Reflect.make(S3, "", "", List.of(), Long.MAX_VALUE, "out/.part-1", 3L)));
    }

    private static void add(Kinds kinds, Sinks.FileSystem fs, List<Object> recoverables) throws Exception {
        Path path = new Path("s3://bucket/out/part-ü");
        Object first = recoverables.get(0);
        Object second = recoverables.get(1);
        kinds.add("FileSinkCommittable", fs.serializer().getClass(), new FileSinkCommittableSerializer(fs.pending(), fs.inProgress()), (c, v) -> fs.json(c), List.of(
                new FileSinkCommittable("2024", Sinks.pending(first, path, 77)), new FileSinkCommittable("", Sinks.pending(second, null, -1)), new FileSinkCommittable("ü", Sinks.inProgress(second, path))));
    }

    private static Object nativeS3(Object r, int version) throws Exception {
        return Json.versioned("NativeS3Recoverable", version, "object", Reflect.call(r, "getObjectName"), "upload_id", Reflect.call(r, "uploadId"), "bytes_in_parts", Reflect.call(r, "numBytesInParts"),
                "parts", Json.list((Collection<?>) Reflect.call(r, "parts"), p -> Json.of("number", Reflect.call(p, "getPartNumber"), "etag", Reflect.call(p, "getETag"))),
                "incomplete", Json.orNull(Reflect.call(r, "incompleteObjectName"), name -> Json.of("object", name, "length", Reflect.call(r, "incompleteObjectLength"))));
    }

    private static Object s3(Object r, int version) throws Exception {
        Object incomplete = Reflect.call(r, "incompleteObjectName");
        return Json.versioned("S3Recoverable", version, "upload", Json.of("object", Reflect.call(r, "getObjectName"), "upload_id", Reflect.call(r, "uploadId"),
                "parts", Json.list((Collection<?>) Reflect.call(r, "parts"), p -> Json.of("number", Reflect.call(p, "getPartNumber"), "etag", Reflect.call(p, "getETag"))),
                "bytes_in_parts", Reflect.call(r, "numBytesInParts"), "incomplete_object", incomplete == null ? "" : incomplete,
                "incomplete_length", Reflect.call(r, "incompleteObjectLength")));
    }
}
