"""Changes a text the way hands, scripts and disks do.

JSON and XML are changed as trees, so that most results are still well formed: values are replaced by those of another place, by
extremes and by neighbours; parts are taken out, repeated, moved and swapped. Some changes, and all of other texts, are of bytes.
"""

import json
import random
import re
import xml.etree.ElementTree

NUMBERS = (0, 1, -1, 2, 3, 7, 64, 1000, 65536, 2**31, 2**53, 2**63 - 1, -(2**63), 10**30, 0.5, 1e300)
TEXTS = ("", "0", "1", "-1", "7", "1e999", "9223372036854775807", "true", "none", "\u00fc", "a b", "x" * 300)
OTHERS = (None, True, "", "x", [], {}, [[]], 1)


def change(text, seed):
    """One change, by a seed; the result may be equal to the text."""
    r = random.Random(seed)
    if r.random() < 0.85:
        if text.lstrip().startswith(("{", "[")):
            try:
                return change_json(text, r)
            except ValueError:
                pass
        if text.lstrip().startswith("<"):
            try:
                return change_xml(text, r)
            except (xml.etree.ElementTree.ParseError, UnicodeError):
                pass
    return change_bytes(text, r)


# ---- JSON ----


def places(value):
    """(container, key) of all that is inside, without recursion."""
    found, open_ = [], [value]
    while open_:
        at = open_.pop()
        keys = at.keys() if isinstance(at, dict) else range(len(at))
        for key in keys:
            found.append((at, key))
            if isinstance(at[key], (dict, list)):
                open_.append(at[key])
    return found


def other_value(value, all_places, r):
    if isinstance(value, str):
        # A topology inside a plan file is a text of its own.
        if value.lstrip().startswith("<topology") and r.random() < 0.8:
            return change(value, r.random())
        return r.choice([v[k] for v, k in all_places if isinstance(v[k], str)] + list(TEXTS))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        way = r.random()
        if way < 0.4:
            return value + r.choice((-1, 1))
        if way < 0.7:
            return r.choice([v[k] for v, k in all_places if isinstance(v[k], int)])
        return r.choice(NUMBERS)
    return r.choice(OTHERS)


def change_json(text, r):
    value = json.loads(text)
    all_places = places(value)
    if not all_places:
        return json.dumps(r.choice(OTHERS))
    # Every key is drawn equally often: else long columns would hide all other keys.
    kinds = {}
    for container, key in all_places:
        kinds.setdefault(key if isinstance(key, str) else id(container), []).append((container, key))
    container, key = r.choice(r.choice(list(kinds.values())))
    way = r.random()
    if way < 0.6:
        container[key] = other_value(container[key], all_places, r)
    elif way < 0.75:
        del container[key]
    elif way < 0.85 and isinstance(container, list):
        container.insert(r.randrange(len(container) + 1), container[key])
    elif way < 0.93:
        other, at = r.choice(all_places)
        if type(other[at]) is type(container[key]) and not isinstance(other[at], (dict, list)):
            container[key], other[at] = other[at], container[key]
        elif isinstance(container, list):
            container.append(container[r.randrange(len(container))])
    else:
        container[key] = r.choice(OTHERS)
    return json.dumps(value)


# ---- XML ----


def other_attribute(value, root, r):
    way = r.random()
    digits = list(re.finditer(r"\d+", value))
    if way < 0.4 and digits:
        number = r.choice(digits)
        new = str(r.choice([max(0, int(number[0]) + r.choice((-1, 1)))] + [n for n in NUMBERS if n == int(n) and 0 <= n < 2**60]))
        return value[: number.start()] + new + value[number.end() :]
    if way < 0.8:
        return r.choice([text for element in root.iter() for text in element.attrib.values()])
    return r.choice(TEXTS)


def change_xml(text, r):
    root = xml.etree.ElementTree.fromstring(text)
    parents = [element for element in root.iter() if len(element)]
    element = r.choice(list(root.iter()))
    way = r.random()
    if way < 0.55 and element.attrib:
        name = r.choice(sorted(element.attrib))
        element.set(name, other_attribute(element.get(name), root, r))
    elif way < 0.65 and element.attrib:
        del element.attrib[r.choice(sorted(element.attrib))]
    elif not parents:
        return change_bytes(text, r)
    elif way < 0.95:
        parent = r.choice(parents)
        child = parent[r.randrange(len(parent))]
        if way < 0.78:
            parent.remove(child)
        if way >= 0.72:  # moved, or repeated
            to = r.choice(parents)
            # Nothing is put inside itself.
            if not any(inner is to for inner in child.iter()):
                to.insert(r.randrange(len(to) + 1), child)
    else:
        element.tag = r.choice([other.tag for other in root.iter()])
    return xml.etree.ElementTree.tostring(root, encoding="unicode") + "\n"


# ---- Bytes ----


def change_bytes(text, r):
    if not text:
        return text
    at = r.randrange(len(text))
    way = r.randrange(5)
    if way == 0:
        return text[:at]
    if way == 1:
        return text[:at] + text[at + r.randint(1, 20) :]
    if way == 2:
        begin = r.randrange(len(text))
        return text[:at] + text[begin : begin + r.randint(1, 40)] + text[at:]
    if way == 3:
        lines = text.split("\n")
        lines.insert(r.randrange(len(lines) + 1), lines[r.randrange(len(lines))])
        return "\n".join(lines)
    return text[:at] + r.choice(("\0", "\ufffd", "9", "-", '"', "<", "{", "\n", " ", "\udcff")) + text[at + 1 :]
