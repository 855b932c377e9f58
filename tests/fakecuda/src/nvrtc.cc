// libnvrtc.so.13: a program compiles to nothing, and its kernels have the names that are asked for.
#include <cstring>

#include "library.h"

static constexpr size_t code_bytes = 64;  // no ELF header, hence no kernels until they are named
struct Program {
  std::string kernel;
};

EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
EXPORT const char* nvrtcGetErrorString(int) { return "an error of the fake NVRTC"; }
EXPORT int nvrtcCreateProgram(Program** program, const char*, const char*, int, const char* const*,
                              const char* const*) {
  *program = new Program;
  return 0;
}
EXPORT int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
EXPORT int nvrtcAddNameExpression(Program* program, const char* name) {
  program->kernel = name;
  return 0;
}
EXPORT int nvrtcGetLoweredName(Program* program, const char*, const char** name) {
  *name = program->kernel.c_str();
  return 0;
}
EXPORT int nvrtcCompileProgram(Program*, int, const char* const*) { return 0; }
EXPORT int nvrtcGetProgramLogSize(Program*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
EXPORT int nvrtcGetProgramLog(Program*, char* out) {
  *out = 0;
  return 0;
}
EXPORT int nvrtcGetPTXSize(Program*, size_t* bytes) {
  *bytes = code_bytes;
  return 0;
}
EXPORT int nvrtcGetPTX(Program*, char* out) {
  memset(out, 0, code_bytes);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(Program*, size_t* bytes) {
  *bytes = code_bytes;
  return 0;
}
EXPORT int nvrtcGetCUBIN(Program*, char* out) {
  memset(out, 0, code_bytes);
  return 0;
}
