package spt.oracle;

import java.io.IOException;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.Path;

/** Where snapshots stand: absolute paths, which are those of {@link FixtureFileSystem}, and URIs of other file systems. */
final class Places {
    static String uri(String place) {
        return place.startsWith("/") ? "file:" + place : place;
    }

    static Path path(String place) {
        return new Path(uri(place));
    }

    /** The place in which a place is. */
    static String parent(String place) {
        return place.substring(0, place.lastIndexOf('/'));
    }

    static boolean exists(String place) throws IOException {
        return path(place).getFileSystem().exists(path(place));
    }

    static void delete(String place) throws IOException {
        path(place).getFileSystem().delete(path(place), true);
    }

    static void move(String from, String to) throws IOException {
        FileSystem files = path(from).getFileSystem();
        files.mkdirs(path(parent(to)));
        if (!files.rename(path(from), path(to))) {
            throw new IOException("cannot rename " + from + " to " + to);
        }
    }
}
