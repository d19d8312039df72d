// Tables of format versions 6 and 7, made with RocksDB 11.1.2.
import org.rocksdb.*;
import java.nio.file.*;
import java.util.*;

public class Make {
  static byte[] b(String s) { return s.getBytes(); }
  static String value(int i) { StringBuilder v = new StringBuilder("value-" + i + "-"); while (v.length() < 20 + i % 37) v.append("abcdefgh".charAt((i + v.length()) % 8)); return v.toString(); }
  public static void main(String[] a) throws Exception {
    Path out = Paths.get(a[0]); Files.createDirectories(out);
    RocksDB.loadLibrary();
    CompressionType[] comps = {CompressionType.NO_COMPRESSION, CompressionType.SNAPPY_COMPRESSION, CompressionType.ZLIB_COMPRESSION, CompressionType.BZLIB2_COMPRESSION, CompressionType.LZ4_COMPRESSION, CompressionType.LZ4HC_COMPRESSION, CompressionType.ZSTD_COMPRESSION};
    String[] cn = {"none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"};
    ChecksumType[] sums = {ChecksumType.kNoChecksum, ChecksumType.kCRC32c, ChecksumType.kxxHash, ChecksumType.kxxHash64, ChecksumType.kXXH3};
    String[] sn = {"none", "crc32c", "xxhash", "xxhash64", "xxh3"};
    int n = 0;
    for (int f = 6; f <= 7; f++) for (int s = 0; s < sums.length; s++) for (int c = 0; c < comps.length; c++) {
      Path dir = Files.createTempDirectory("db");
      BlockBasedTableConfig t = new BlockBasedTableConfig().setFormatVersion(f).setChecksumType(sums[s]).setBlockSize(512);
      if (n % 3 == 1) t.setIndexType(IndexType.kTwoLevelIndexSearch).setMetadataBlockSize(128).setFilterPolicy(new BloomFilter(10)).setPartitionFilters(true);
      if (n % 3 == 2) t.setIndexType(IndexType.kBinarySearchWithFirstKey).setDataBlockIndexType(DataBlockIndexType.kDataBlockBinaryAndHash);
      try (Options o = new Options().setCreateIfMissing(true).setCompressionType(comps[c]).setTableFormatConfig(t).setMergeOperatorName("stringappendtest");
          RocksDB db = RocksDB.open(o, dir.toString())) {
        for (int i = 0; i < 60; i++) db.put(b(String.format("key-%05d", i)), b(value(i)));
        for (int i = 0; i < 60; i += 7) db.merge(b(String.format("key-%05d-list", i)), b("m" + i));
        for (int i = 3; i < 60; i += 11) db.delete(b(String.format("key-%05d-gone", i)));
        db.deleteRange(b("key-00005"), b("key-00008"));
        try (FlushOptions fo = new FlushOptions().setWaitForFlush(true)) { db.flush(fo); }
        List<LiveFileMetaData> live = db.getLiveFilesMetaData();
        if (live.size() != 1) throw new Exception(live.size() + " files");
        Files.copy(dir.resolve(live.get(0).fileName().substring(1)), out.resolve("f" + f + "-" + sn[s] + "-" + cn[c] + ".sst"));
      }
      n++;
    }
    System.out.println(n);
  }
}
