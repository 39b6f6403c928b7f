#include "python/bindings/py.h"

#include <deque>
#include <new>

namespace xccl::python::py {
namespace {

// A function of Python that calls a body.
struct FunctionObject {
  PyObject_HEAD Body body;
};

void Free(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

void FreeFunction(PyObject* object) {
  reinterpret_cast<FunctionObject*>(object)->body.~Body();
  Free(object);
}

PyObject* CallFunction(PyObject* self, PyObject* arguments, PyObject* named) {
  try {
    if (named != nullptr && PyDict_Size(named) > 0) throw cast_error("arguments by place");
    return reinterpret_cast<FunctionObject*>(self)->body(arguments).release();
  } catch (...) {
    SetErrorOfException();
    return nullptr;
  }
}

// A function that is read from an object is a method of the object.
PyObject* BindFunction(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  static PyObject* const method = Import("types", "MethodType").release();
  return PyObject_CallFunctionObjArgs(method, self, object, nullptr);
}

PyTypeObject* TypeOfFunctions() {
  static PyTypeObject* const type = [] {
    PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&CallFunction)},
                           {Py_tp_descr_get, reinterpret_cast<void*>(&BindFunction)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(&FreeFunction)},
                           {0, nullptr}};
    PyType_Spec spec = {"xccl_synth._xccl.function", sizeof(FunctionObject), 0, Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject*>(object::Steal(PyType_FromSpec(&spec)).release());
  }();
  return type;
}

PyObject* NewOf(PyTypeObject* type, PyObject*, PyObject*) { return NewInstance(type); }

void FreeInstance(PyObject* object) {
  reinterpret_cast<Instance*>(object)->held.~shared_ptr();
  Free(object);
}

}  // namespace

PyObject* NewInstance(PyTypeObject* type) {
  PyObject* const made = PyType_GenericAlloc(type, 0);
  if (made != nullptr) new (&reinterpret_cast<Instance*>(made)->held) std::shared_ptr<void>();
  return made;
}

object Function(Body body) {
  object made = object::Steal(PyType_GenericAlloc(TypeOfFunctions(), 0));
  new (&reinterpret_cast<FunctionObject*>(made.ptr())->body) Body(std::move(body));
  return made;
}

PyTypeObject* NewType(const char* name, const char* doc) {
  static std::deque<std::string> names;  // types keep theirs
  const std::string& own = names.emplace_back(std::string("xccl_synth._xccl.") + name);
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&NewOf)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&FreeInstance)},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {0, nullptr}};
  PyType_Spec spec = {own.c_str(), sizeof(Instance), 0, Py_TPFLAGS_DEFAULT, slots};
  return reinterpret_cast<PyTypeObject*>(object::Steal(PyType_FromSpec(&spec)).release());
}

}  // namespace xccl::python::py
