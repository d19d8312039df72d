// Makes tables and databases of every encoding with RocksDB itself.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/options_util.h>
#include <rocksdb/convenience.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
using namespace rocksdb;
namespace fs = std::filesystem;

static void ok(const Status& s) { if (!s.ok()) { fprintf(stderr, "%s\n", s.ToString().c_str()); exit(1); } }
static std::string key(int i) { char b[32]; snprintf(b, sizeof b, "key-%05d", i); return b; }
static std::string value(int i) { std::string v = "value-" + std::to_string(i) + "-"; while ((int)v.size() < 20 + i % 37) v += "abcdefgh"[(i + v.size()) % 8]; return v; }

static BlockBasedTableOptions table(int format, ChecksumType sum) {
  BlockBasedTableOptions t;
  t.format_version = format; t.checksum = sum; t.block_size = 512; t.filter_policy.reset();
  return t;
}

static void writeTable(const std::string& path, const BlockBasedTableOptions& t, CompressionType c, int n, int dict = 0, int train = 0) {
  // Through a database, so that tables are not of the kind that is ingested.
  std::string dir = path + ".db";
  Options o; o.create_if_missing = true; o.compression = c; o.table_factory.reset(NewBlockBasedTableFactory(t));
  o.compression_opts.max_dict_bytes = dict; o.compression_opts.zstd_max_train_bytes = train; o.bottommost_compression = kDisableCompressionOption;
  o.merge_operator = nullptr;
  ok(MergeOperator::CreateFromString(ConfigOptions(), "stringappendtest", &o.merge_operator));
  DB* db; ok(DB::Open(o, dir, &db));
  for (int i = 0; i < n; i++) ok(db->Put(WriteOptions(), key(i), value(i)));
  for (int i = 0; i < n; i += 7) ok(db->Merge(WriteOptions(), key(i) + "-list", "m" + std::to_string(i)));
  for (int i = 3; i < n; i += 11) ok(db->Delete(WriteOptions(), key(i) + "-gone"));
  ok(db->DeleteRange(WriteOptions(), db->DefaultColumnFamily(), "key-00005", "key-00008"));
  ok(db->Flush(FlushOptions()));
  std::vector<LiveFileMetaData> live; db->GetLiveFilesMetaData(&live);
  if (live.size() != 1) { fprintf(stderr, "%zu files\n", live.size()); exit(1); }
  fs::copy_file(dir + live[0].name, path, fs::copy_options::overwrite_existing);
  ok(db->Close()); delete db; fs::remove_all(dir);
}

static std::string hex(const Slice& s) { return s.ToString(true); }

static uint64_t seed;
static uint32_t rnd(uint32_t n) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return (uint32_t)(seed >> 33) % n; }

// A database as Flink uses it: families, no WAL, merges, deletes, single deletes, range tombstones, several levels.
static void writeDB(const std::string& out, int format, ChecksumType sum, CompressionType c, int variant) {
  std::string dir = out + ".live";
  seed = 1000 + variant;
  BlockBasedTableOptions t = table(format, sum);
  if (variant % 2) { t.filter_policy.reset(NewBloomFilterPolicy(10)); }
  if (variant % 3 == 1) { t.index_type = BlockBasedTableOptions::kTwoLevelIndexSearch; t.partition_filters = t.filter_policy != nullptr; t.metadata_block_size = 128; t.cache_index_and_filter_blocks = true; }
  if (variant % 3 == 2) { t.data_block_index_type = BlockBasedTableOptions::kDataBlockBinaryAndHash; t.index_type = BlockBasedTableOptions::kBinarySearchWithFirstKey; }
  if (variant % 4 == 3) { t.index_block_restart_interval = 8; }
  Options o; o.create_if_missing = true; o.compression = c; o.table_factory.reset(NewBlockBasedTableFactory(t));
  o.write_buffer_size = 16 << 10; o.target_file_size_base = 8 << 10; o.max_bytes_for_level_base = 16 << 10; o.level0_file_num_compaction_trigger = 3;
  ok(MergeOperator::CreateFromString(ConfigOptions(), "stringappendtest", &o.merge_operator));
  o.disable_auto_compactions = false;
  DB* db; ok(DB::Open(o, dir, &db));
  ColumnFamilyHandle *values, *lists, *dropped;
  ok(db->CreateColumnFamily(o, "values", &values)); ok(db->CreateColumnFamily(o, "lists", &lists)); ok(db->CreateColumnFamily(o, "dropped", &dropped));
  WriteOptions w; w.disableWAL = true;
  ok(db->Put(w, dropped, "a", "b")); ok(db->Flush(FlushOptions(), dropped)); ok(db->DropColumnFamily(dropped)); ok(db->DestroyColumnFamilyHandle(dropped));
  for (int round = 0; round < 6; round++) {
    for (int i = 0; i < 250; i++) {
      std::string k = std::string(1, (char)rnd(16)) + key(rnd(400));
      switch (rnd(10)) {
      case 0: ok(db->Delete(w, values, k)); break;
      case 1: { std::string once = "\x0e" "once" + std::to_string(round) + "-" + std::to_string(i); ok(db->Put(w, values, once, "x")); if (rnd(2)) ok(db->SingleDelete(w, values, once)); break; }
      case 2: ok(db->Put(w, lists, k, "base" + std::to_string(rnd(1000)))); break;
      case 3: ok(db->Delete(w, lists, k)); break;
      case 4: case 5: case 6: ok(db->Merge(w, lists, std::string(1, (char)rnd(16)) + key(rnd(40)), "e" + std::to_string(rnd(100000)))); break;
      default: ok(db->Put(w, values, k, value(rnd(1000))));
      }
    }
    if (round % 2) {
      char a = (char)rnd(16), b = (char)(a + 1 + rnd(3));
      for (auto* cf : {values, lists}) ok(db->DeleteRange(w, cf, Slice(&a, 1), Slice(&b, 1)));
      std::string s = std::string(1, a) + key(100), e = std::string(1, b) + key(200);
      ok(db->DeleteRange(w, values, s, e));
    }
    ok(db->Flush(FlushOptions(), values)); ok(db->Flush(FlushOptions(), lists));
  }
  if (variant == 4) { // an ingested table, which has one sequence number for all entries
    Options so = o; SstFileWriter sw(EnvOptions(), so, values);
    ok(sw.Open(out + ".sst"));
    for (int i = 0; i < 30; i++) ok(sw.Put("\x05" "key-ingest" + std::to_string(1000 + i), value(i)));
    ok(sw.DeleteRange("\x06", "\x07")); ok(sw.Finish());
    IngestExternalFileOptions in; in.write_global_seqno = true;
    ok(db->IngestExternalFile(values, {out + ".sst"}, in));
    fs::remove(out + ".sst");
  }
  if (variant == 5) { ok(db->CompactRange(CompactRangeOptions(), lists, nullptr, nullptr)); }
  Checkpoint* cp; ok(Checkpoint::Create(db, &cp)); ok(cp->CreateCheckpoint(out)); delete cp;
  std::ofstream dump(out + ".dump");
  for (auto* cf : {values, lists}) {
    Iterator* it = db->NewIterator(ReadOptions(), cf);
    for (it->SeekToFirst(); it->Valid(); it->Next()) dump << cf->GetName() << " " << hex(it->key()) << " " << hex(it->value()) << "\n";
    ok(it->status()); delete it;
  }
  std::vector<LiveFileMetaData> live; db->GetLiveFilesMetaData(&live);
  std::map<std::string, std::map<int,int>> levels; for (auto& l : live) levels[l.column_family_name][l.level]++;
  for (auto& f : levels) for (auto& l : f.second) printf("%s: %s level %d: %d\n", out.c_str(), f.first.c_str(), l.first, l.second);
  ok(db->DestroyColumnFamilyHandle(values)); ok(db->DestroyColumnFamilyHandle(lists)); ok(db->Close()); delete db; fs::remove_all(dir);
}

int main(int argc, char** argv) {
  std::string dir = argv[1]; fs::create_directories(dir + "/tables");
  std::vector<std::pair<std::string, ChecksumType>> sums = {{"none", kNoChecksum}, {"crc32c", kCRC32c}, {"xxhash", kxxHash}, {"xxhash64", kxxHash64}, {"xxh3", kXXH3}};
  std::vector<std::pair<std::string, CompressionType>> comps = {{"none", kNoCompression}, {"snappy", kSnappyCompression}, {"zlib", kZlibCompression}, {"bzip2", kBZip2Compression}, {"lz4", kLZ4Compression}, {"lz4hc", kLZ4HCCompression}, {"zstd", kZSTD}};
  for (int f = 0; f <= 5; f++) for (auto& s : sums) for (auto& c : comps) {
    if (f == 0 && s.second != kCRC32c) continue;
    writeTable(dir + "/tables/f" + std::to_string(f) + "-" + s.first + "-" + c.first + ".sst", table(f, s.second), c.second, 60);
  }
  for (auto& c : comps) if (c.second != kNoCompression && c.second != kSnappyCompression && c.second != kBZip2Compression)
    for (int train : {0, 16384}) writeTable(dir + "/tables/dict" + std::string(train ? "-trained-" : "-") + c.first + ".sst", table(5, kXXH3), c.second, 300, 2048, train);
  DB* unused; (void)unused;
  int v = 0;
  struct { int f; ChecksumType s; CompressionType c; } dbs[] = {{0, kCRC32c, kSnappyCompression}, {2, kCRC32c, kNoCompression}, {3, kxxHash, kLZ4Compression}, {4, kxxHash64, kZSTD}, {5, kXXH3, kSnappyCompression}, {5, kCRC32c, kSnappyCompression}, {5, kXXH3, kZlibCompression}, {5, kXXH3, kSnappyCompression}};
  for (auto& d : dbs) { writeDB(dir + "/db" + std::to_string(v), d.f, d.s, d.c, v); v++; }
}
