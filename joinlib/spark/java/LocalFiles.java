package dev.streamjoin;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.Syncable;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, checksums included, made durable for the logs of a stream: a log file is on the
 * disk before it gets its name, its name is on the disk when `rename` returns, and a rename never
 * replaces a file.
 *
 * Checksum files are not forced to the disk: Hadoop ignores one that is missing or truncated.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    /** The raw file system; the setting `streamjoin.sync` decides whether files are forced to the disk. */
    public static class Raw extends RawLocalFileSystem {
        private boolean synced;

        @Override
        public void initialize(URI uri, Configuration conf) throws IOException {
            super.initialize(uri, conf);
            synced = conf.getBoolean("streamjoin.sync", true);
        }

        /** Sets permissions without a fork; Hadoop without its native library forks `chmod` twice. */
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
            }
        }

        @Override
        protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission)
                throws IOException {
            OutputStream file = super.createOutputStreamWithMode(path, append, permission);
            return synced && !isChecksum(path) ? new Forced(file) : file;
        }

        /**
         * Renames by link(2), which is atomic and fails if the target exists; rename(2) would replace it. On
         * the few file systems without links it checks first and then renames.
         */
        @Override
        public boolean rename(Path source, Path target) throws IOException {
            java.nio.file.Path from = pathToFile(source).toPath();
            java.nio.file.Path to = pathToFile(target).toPath();
            if (isChecksum(source) || Files.isDirectory(from) || Files.isDirectory(to)) {
                return super.rename(source, target);
            }
            try {
                Files.createLink(to, from);
                Files.delete(from);
            } catch (FileAlreadyExistsException taken) {
                return false;
            } catch (FileSystemException noLinks) {
                if (Files.exists(to) || !super.rename(source, target)) {
                    return false;
                }
            }
            if (synced) {
                force(to.getParent());
            }
            return true;
        }

        private static boolean isChecksum(Path path) {
            return path.getName().endsWith(".crc");
        }

        private static void force(java.nio.file.Path folder) throws IOException {
            FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ);
            try {
                channel.force(true);
            } finally {
                channel.close();
            }
        }
    }

    /** A file that is forced to the disk when it is closed. */
    private static class Forced extends FilterOutputStream {
        private boolean open = true;

        Forced(OutputStream file) {
            super(file);
        }

        @Override
        public void write(byte[] bytes, int from, int count) throws IOException {
            out.write(bytes, from, count);
        }

        @Override
        public void close() throws IOException {
            if (open) {
                open = false;
                try {
                    ((Syncable) out).hsync();
                } finally {
                    out.close();
                }
            }
        }
    }
}
