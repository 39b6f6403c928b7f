// Conversions between values of C++ and objects of Python: part of py.h. What
// does not fit throws cast_error.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/bindings/py_object.h"

namespace xccl::python::py {

// An object of a class of C++: it shares the ownership of the value.
struct Instance {
  PyObject_HEAD std::shared_ptr<void> held;
};
template <typename T>
inline PyTypeObject* type_of = nullptr;  // set once, when the class is bound

template <typename T>
const std::shared_ptr<void>& HeldBy(PyObject* from) {
  if (type_of<T> == nullptr || !PyObject_TypeCheck(from, type_of<T>))
    throw cast_error("an object of the module");
  const auto& held = reinterpret_cast<Instance*>(from)->held;
  if (!held) throw cast_error("an object that is whole");
  return held;
}
PyObject* NewInstance(PyTypeObject* type);  // that holds nothing; null and an
                                            // error of Python where it fails
template <typename T>
object Made(std::shared_ptr<T> value) {
  using Plain = std::remove_const_t<T>;
  if (!value) return none();
  object made = object::Steal(NewInstance(type_of<Plain>));
  reinterpret_cast<Instance*>(made.ptr())->held = std::const_pointer_cast<Plain>(std::move(value));
  return made;
}

template <typename T>
inline constexpr bool kIsObject = std::is_base_of_v<handle, T>;

// The conversions of one type: Get(PyObject*) and Make(value).
template <typename T, typename = void>
struct Caster {  // a class of C++
  static constexpr bool kIsClass = true;
  static T Get(PyObject* from) { return *static_cast<T*>(HeldBy<T>(from).get()); }
  static object Make(T value) { return Made(std::make_shared<T>(std::move(value))); }
};
template <typename T>
struct Caster<T, std::enable_if_t<kIsObject<T>>> {
  static T Get(PyObject* from) {
    if constexpr (std::is_same_v<T, object> || std::is_same_v<T, handle>) {
      return object::Borrow(from);
    } else {
      if (!T::Is(from)) throw cast_error("another type of Python");
      return T(object::Borrow(from));
    }
  }
  static object Make(T value) { return value; }
};
template <>
struct Caster<bool> {
  static bool Get(PyObject* from) {
    if (from != Py_True && from != Py_False) throw cast_error("True or False");
    return from == Py_True;
  }
  static object Make(bool value) { return object::Borrow(value ? Py_True : Py_False); }
};
template <typename T>
struct Caster<T, std::enable_if_t<std::is_integral_v<T>>> {
  static T Get(PyObject* from) {
    if (!PyLong_Check(from)) throw cast_error("a whole number");
    using Widest = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
    Widest value = 0;
    if constexpr (std::is_signed_v<T>)
      value = PyLong_AsLongLong(from);
    else
      value = PyLong_AsUnsignedLongLong(from);
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw cast_error("a smaller number");
    }
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      throw cast_error("a smaller number");
    return static_cast<T>(value);
  }
  static object Make(T value) {
    if constexpr (std::is_signed_v<T>)
      return object::Steal(PyLong_FromLongLong(value));
    else
      return object::Steal(PyLong_FromUnsignedLongLong(value));
  }
};
template <>
struct Caster<double> {
  static double Get(PyObject* from) {
    const double value = PyFloat_AsDouble(from);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw cast_error("a number");
    }
    return value;
  }
  static object Make(double value) { return object::Steal(PyFloat_FromDouble(value)); }
};
template <>
struct Caster<std::string_view> {
  static std::string_view Get(PyObject* from) {  // of bytes; valid as long as they are
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!PyBytes_Check(from) || PyBytes_AsStringAndSize(from, &data, &size) != 0) throw cast_error("bytes");
    return {data, static_cast<size_t>(size)};
  }
  static object Make(std::string_view text) {
    return object::Steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  }
};
template <>
struct Caster<std::string> {
  static std::string Get(PyObject* from) {  // of a text or of bytes
    if (!PyUnicode_Check(from)) return std::string(Caster<std::string_view>::Get(from));
    return std::string(Caster<std::string_view>::Get(object::Steal(PyUnicode_AsUTF8String(from)).ptr()));
  }
  static object Make(std::string_view text) { return Caster<std::string_view>::Make(text); }
};
template <>
struct Caster<const char*> : Caster<std::string> {};
template <typename T>
struct Caster<std::optional<T>> {
  static std::optional<T> Get(PyObject* from) {
    if (from == Py_None) return std::nullopt;
    return FromPython<T>(from);
  }
  static object Make(std::optional<T> value) { return value ? ToPython(*std::move(value)) : none(); }
};
template <typename T>
struct Caster<std::vector<T>> {
  static std::vector<T> Get(PyObject* from) {
    if (!PySequence_Check(from) || PyUnicode_Check(from) || PyBytes_Check(from)) throw cast_error("a list");
    std::vector<T> values;
    for (Py_ssize_t i = 0; i < PySequence_Size(from); ++i)
      values.push_back(FromPython<T>(object::Steal(PySequence_GetItem(from, i)).ptr()));
    return values;
  }
  static object Make(const std::vector<T>& values) {
    list made;
    for (const T& value : values) made.append(value);
    return made;
  }
};
template <typename... Ts>
struct Caster<std::tuple<Ts...>> {
  static std::tuple<Ts...> Get(PyObject* from) {
    if (!PySequence_Check(from) || PySequence_Size(from) != sizeof...(Ts)) throw cast_error("a tuple");
    return Get(from, std::index_sequence_for<Ts...>());
  }
  template <size_t... I>
  static std::tuple<Ts...> Get(PyObject* from, std::index_sequence<I...>) {
    return {FromPython<Ts>(object::Steal(PySequence_GetItem(from, I)).ptr())...};
  }
  static object Make(const std::tuple<Ts...>& values) {
    return std::apply([](const auto&... each) { return py::make_tuple(each...); }, values);
  }
};
template <typename A, typename B>
struct Caster<std::pair<A, B>> {
  static std::pair<A, B> Get(PyObject* from) {
    auto [a, b] = FromPython<std::tuple<A, B>>(from);
    return {std::move(a), std::move(b)};
  }
  static object Make(const std::pair<A, B>& pair) { return py::make_tuple(pair.first, pair.second); }
};
template <typename T>
struct Caster<std::shared_ptr<T>> {
  static std::shared_ptr<T> Get(PyObject* from) {
    if (from == Py_None) return nullptr;
    return std::static_pointer_cast<T>(HeldBy<std::remove_const_t<T>>(from));
  }
  static object Make(std::shared_ptr<T> value) { return Made(std::move(value)); }
};
template <typename T>
struct Caster<std::unique_ptr<T>> {
  static object Make(std::unique_ptr<T> value) { return Made(std::shared_ptr<T>(std::move(value))); }
};

template <typename T>
T FromPython(PyObject* from) {
  return Caster<T>::Get(from);
}
template <typename T>
object ToPython(T&& value) {
  return Caster<std::decay_t<T>>::Make(std::forward<T>(value));
}

}  // namespace xccl::python::py
