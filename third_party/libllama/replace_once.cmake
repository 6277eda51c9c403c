# Replaces in `text` what is there exactly once, else sets `fits` to FALSE. Both are names of the caller's variables.
macro(replace_once text fits old new)
  string(FIND "${${text}}" "${old}" first)
  string(FIND "${${text}}" "${old}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    set(${fits} FALSE)
  endif()
  string(REPLACE "${old}" "${new}" ${text} "${${text}}")
endmacro()
