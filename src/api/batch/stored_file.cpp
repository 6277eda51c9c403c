#include "api/batch/stored_file.h"

#include "api/batch/stored_fields.h"
#include "api/body/fields.h"

namespace chasqui {

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
  json.field("id", file.id);
  write_stored_number(json, "owner", file.owner);
  json.field("serial", file.serial);
  json.field("filename", file.filename);
  json.field("purpose", file.purpose);
  json.field("bytes", file.bytes);
  json.field("created", file.created);
  json.field("expires", file.expires);
  json.end_object();
  return out;
}

Result<StoredFile> read_file_meta(std::string_view text) {
  auto object = parse_json_object(text);
  if (!object) return object.error();
  StoredFields fields(*object);
  StoredFile file;
  file.id = fields.text("id");
  file.owner = fields.stored_number("owner");
  file.serial = fields.count("serial");
  file.filename = fields.text("filename");
  file.purpose = fields.text("purpose");
  file.bytes = fields.count("bytes");
  file.created = fields.integer("created");
  file.expires = fields.integer("expires");
  if (!fields.ok()) return fields.error();
  return file;
}

}  // namespace chasqui
