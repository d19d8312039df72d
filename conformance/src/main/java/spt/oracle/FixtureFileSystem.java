package spt.oracle;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import org.apache.flink.core.fs.FileStatus;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.FileSystemFactory;
import org.apache.flink.core.fs.local.LocalFileStatus;
import org.apache.flink.core.fs.local.LocalFileSystem;

/**
 * Flink's local file system, except that paths below {@link #NAMED} are stored in a directory of this process. Snapshots name absolute paths, and Flink orders blocks of
 * state by the hash of those paths; so Flink must see the paths that are in the files. With this class nothing exists at these paths outside the JVM: other processes
 * that read the same snapshots, and other runs of the tests, are not disturbed.
 */
public final class FixtureFileSystem extends LocalFileSystem {
    private static final String NAMED = "/spt-fixtures";
    private static final String STORED = System.getProperty("spt.fixtures", NAMED);

    /** Where a path that Flink sees is stored. */
    static Path stored(String named) {
        return Path.of(below(named, NAMED) ? STORED + named.substring(NAMED.length()) : named);
    }

    static Path stored(Path named) {
        return stored(named.toString());
    }

    private static boolean below(String path, String directory) {
        return path.equals(directory) || path.startsWith(directory + "/");
    }

    @Override
    public File pathToFile(org.apache.flink.core.fs.Path path) {
        return stored(super.pathToFile(path).getPath()).toFile();
    }

    @Override
    public FileStatus getFileStatus(org.apache.flink.core.fs.Path path) throws IOException {
        return named(super.getFileStatus(path));
    }

    @Override
    public FileStatus[] listStatus(org.apache.flink.core.fs.Path path) throws IOException {
        FileStatus[] all = super.listStatus(path);
        if (all != null) {
            for (int i = 0; i < all.length; i++) {
                all[i] = named(all[i]);
            }
        }
        return all;
    }

    /** The status of a stored file, with the path that Flink sees. */
    private FileStatus named(FileStatus status) {
        String path = status.getPath().getPath();
        if (!below(path, STORED)) {
            return status;
        }
        org.apache.flink.core.fs.Path named = new org.apache.flink.core.fs.Path("file:" + NAMED + path.substring(STORED.length()));
        return new LocalFileStatus(((LocalFileStatus) status).getFile(), this) {
            @Override
            public org.apache.flink.core.fs.Path getPath() {
                return named;
            }
        };
    }

    /** Takes the place of Flink's own factory for the scheme "file"; META-INF/services names it. */
    public static final class Factory implements FileSystemFactory {
        @Override
        public String getScheme() {
            return "file";
        }

        /** Since 2.3: the factory of the highest priority is used; before, the last one. */
        public int getPriority() {
            return 1;
        }

        @Override
        public FileSystem create(URI uri) {
            return new FixtureFileSystem();
        }
    }
}
