#include "api/batch/stored_file.h"

#include "api/batch/record_fields.h"

namespace chasqui {
namespace {

// Every field that is kept, in the order of the file: read and written by this list alone.
template <class Record, class File>
void visit_fields(Record& record, File& file) {
  record.text("id", file.id);
  record.digits("owner", file.owner);
  record.count("serial", file.serial);
  record.text("filename", file.filename);
  record.text("purpose", file.purpose);
  record.count("bytes", file.bytes);
  record.integer("created", file.created);
  record.integer("expires", file.expires);
}

}  // namespace

void write_file(JsonWriter& json, const StoredFile& file) {
  json.begin_object();
  json.field("id", file.id);
  json.field("object", "file");
  json.field("bytes", file.bytes);
  json.field("created_at", file.created);
  if (file.expires != 0) json.field("expires_at", file.expires);
  json.field("filename", file.filename);
  json.field("purpose", file.purpose);
  json.field("status", "processed");
  json.end_object();
}

std::string file_meta(const StoredFile& file) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  RecordFieldsWriter record(json);
  visit_fields(record, file);
  json.end_object();
  return out;
}

Result<StoredFile> read_file_meta(std::string_view text) {
  auto object = parse_json_object(text);
  if (!object) return object.error();
  RecordFieldsReader record(*object);
  StoredFile file;
  visit_fields(record, file);
  if (!record.ok()) return record.error();
  return file;
}

}  // namespace chasqui
