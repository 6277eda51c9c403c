# What is installed (`make install`), and a Debian package of it (`make deb`): the binary, documents, and what
# Installed.cmake.in adds.
include(GNUInstallDirs)
install(TARGETS chasqui RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/chasqui)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/chasqui)
install(DIRECTORY deploy/grafana deploy/prometheus DESTINATION ${CMAKE_INSTALL_DATADIR}/chasqui)
install(FILES deploy/systemd/chasqui.sysusers DESTINATION lib/sysusers.d RENAME chasqui.conf)
configure_file(cmake/Installed.cmake.in ${PROJECT_BINARY_DIR}/Installed.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/Installed.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME chasqui)
set(CPACK_PACKAGE_VENDOR Chasqui)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves GGUF language models to many clients at once")
set(CPACK_PACKAGE_DESCRIPTION "One binary on libllama that speaks the APIs of OpenAI, Anthropic, Ollama and llama-server.
 Streams keep their pace while long prompts are read, what was computed is not computed again, and overload is
 refused at the door.")
set(CPACK_PACKAGE_CONTACT "Chasqui <chasqui@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Of `chasqui pull` alone, which loads it when it runs.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4 (>= 7.85) | libcurl3-gnutls (>= 7.85), ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "systemd, libzmq5 (>= 4.2), libnats3.4")   # of --kv-events and --batch-queue
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
    ${PROJECT_SOURCE_DIR}/deploy/debian/prerm ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles)
include(CPack)
