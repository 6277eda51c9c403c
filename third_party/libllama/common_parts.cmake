# Of llama-common, what the project calls: chat templates, parsers of answers, flags, drafting. Left out is what downloads
# models, with the HTTP client that it needs: `chasqui pull` does that, and no_downloads.cpp stands in for what flags refer
# to. So are the parts that third_party/counted compiles with counters. The rest is compiled in batches, with -O2: it runs
# once for a request, not for a token.
function(chasqui_common_parts)
  get_target_property(sources llama-common SOURCES)
  list(FILTER sources EXCLUDE REGEX "^(download|hf-cache|preset|console|debug|imatrix-loader|llguidance|subproc)\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "^(json-schema|json-schema-to-grammar|peg-parser|jinja/runtime|jinja/value)\\.cpp$")
  set_property(TARGET llama-common PROPERTY SOURCES ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/no_downloads.cpp)
  target_include_directories(llama-common PRIVATE ${LLAMA_SOURCE_DIR}/common)
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(links llama-common ${property})
    list(FILTER links EXCLUDE REGEX "cpp-httplib")
    set_property(TARGET llama-common PROPERTY ${property} ${links})
  endforeach()

  set_target_properties(llama-common PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  # Its name for a type of nlohmann's is that of another type in all other files.
  set_property(SOURCE ${LLAMA_SOURCE_DIR}/common/json.cpp TARGET_DIRECTORY llama-common
    PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  target_compile_options(llama-common PRIVATE -O2)
endfunction()
