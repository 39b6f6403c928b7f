#include "python/bindings/arrays.h"

#include <string>
#include <utility>

namespace xccl::python {

py::array ArrayOf(Memory memory) {
  static const char kNothing = 0;
  if (memory.first == nullptr) memory.first = &kNothing;
  return py::array(py::Import("numpy", "asarray")(std::move(memory)));
}

Numbers NumbersOf(const py::object& array) {
  const py::object interface = array.attr("__array_interface__");
  const auto field = [&](const char* name) {
    PyObject* const found = PyDict_GetItemString(interface.ptr(), name);
    if (found == nullptr) throw py::cast_error("an array");
    return py::object::Borrow(found);
  };
  const auto shape = field("shape").cast<py::tuple>();
  if (field("typestr").cast<std::string>() != "<i4" || shape.size() > 1)
    throw py::cast_error("a column of 32 bits");
  const auto data = field("data").cast<py::tuple>();
  // NumPy gives addresses as numbers.
  const auto* const items =
      reinterpret_cast<const int32_t*>(data[0].cast<uintptr_t>());  // NOLINT(performance-no-int-to-ptr)
  return {array, items, shape.size() == 0 ? 1 : shape[0].cast<size_t>()};
}

void BindArrays(py::module_& module) {
  py::class_<Memory>(module, "Memory").def_property_readonly("__array_interface__", [](const Memory& memory) {
    py::dict interface;
    interface["shape"] = py::make_tuple(memory.size);
    interface["typestr"] = memory.type;
    interface["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(memory.first), true);  // read-only
    interface["strides"] = py::make_tuple(memory.stride);
    interface["version"] = 3;
    return interface;
  });
}

}  // namespace xccl::python
