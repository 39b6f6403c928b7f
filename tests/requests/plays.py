"""Plays requests: the commands of each, and what must hold between what they print.

A play returns a word that says how it went, for the hunt's table, or raises Fault.
"""

import contextlib
import io
import json
import pathlib
import random
import re
import sys
import typing

from change import change
from draw import ROOTED, flat
from machines import Machine
from shell import Fault, Shell, error_line

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
sys.dont_write_bytecode = True
import check_plan  # examples/check_plan.py

PLAN = "p.plan.json"
ROUNDING = 1e-9  # relative error of times that are printed as microseconds
# auto's time over that of the best engine by itself: 2 % for fewer messages (synth/portfolio/preference.h), and what is
# left above the bound where auto stops.
WORSE = 1.03
FALLS = WORSE - 1  # how much less than at a smaller size a plan's time may be: engines and their chunks differ
# As much for one schedule where messages have fixed times: links take who is ready first, and a larger message that
# comes later may let others pass, whose overheads then overlap (the anomaly of list schedules).
REORDERED = 0.25
APART = 0.03  # how far plans of one machine are apart that has its nodes in two orders, to be counted
MOST_JOBS = 4000  # that check_plan.py simulates: one event at a time
MOST_MOVES = 20000  # that check_plan.py reads
FOREVER_US = (1 << 61) / 1e6  # the longest time that can be said
MOST_DOUBLED_US = 6 * 3600 * 1e6  # times of up to a day are supported, and twice the size takes about twice as long


def main_words(request, size=None):
    """TOPOLOGY and the flags that say what is asked for, for plan and bound alike."""
    size = request.size if size is None else size
    return [request.topology_word(), *flat(request.of_machine), *flat(request.of_collective), *(("-s", size) if size else ())]


def plan_words(request, output=None, size=None):
    out = ("-o", output) if output else ()
    return ["plan", *main_words(request, size), *flat(request.of_plan), *out, "--json"]


def flag_value(flags, name):
    return next((flag[1] for flag in flags if flag[0] == name and len(flag) > 1), None)


class Planned(typing.NamedTuple):
    request: object
    shell: Shell
    row: dict  # row that plan --json prints
    file: str

    def size(self):
        """The size that was asked for; the row has what is left of it when parts are rounded."""
        return json.loads(self.shell.read(self.file))["made_by"]["size_bytes"]

    def has_program(self):
        return self.row["threadblocks"] is not None

    def is_group(self):
        return flag_value(self.request.of_collective, "--groups") is not None


def must(done, what):
    """A command that must end with 0 here. Its message, without names and figures, tells one fault from another."""
    if done.code != 0:
        why = re.sub(r"\d+", "N", re.sub(r"'[^']*'|\S*[./]\S*:?", "X", error_line(done.err)))[:60]
        raise Fault(f"{done.words[0]}: {what} ({why})", done.err.strip()[-500:])
    return done


def same_time(name, one, other):
    if abs(one - other) > ROUNDING * max(one, other):
        raise Fault(name, f"{one!r} us and {other!r} us")


def check_row(row):
    if row["time_us"] < row["bound_us"] * (1 - ROUNDING):
        raise Fault("plan: faster than its bound", f"{row['time_us']} us, bound {row['bound_us']} us")
    if row["latency_us"] > row["bound_us"] * (1 + ROUNDING):
        raise Fault("plan: a bound below that of latency", f"{row['latency_us']} us, bound {row['bound_us']} us")


def make_plan(request, shell, output=PLAN):
    """The plan of a request, or the word for its refusal."""
    done = shell.run(*plan_words(request, output))
    if done.code != 0:
        if (shell.folder / output).exists():
            raise Fault("plan: fails and writes a file", done.err.strip()[-500:])
        return f"refused {done.code}"
    row = done.json()
    check_row(row)
    return Planned(request, shell, row, output)


# ---- What is done with a plan ----


def bound(planned):
    if planned.is_group():
        return
    model = flag_value(planned.request.of_plan, "--model") or "pipelined"
    done = planned.shell.run("bound", *main_words(planned.request), "--model", model, "--json")
    same_time("bound: another than plan's", must(done, "refuses what was planned").json()["bound_us"], planned.row["bound_us"])


def verify(planned):
    done = must(planned.shell.run("verify", planned.file, "--json"), "refuses a plan")
    if done.json()["ok"] is not True:
        raise Fault("verify: not ok", done.out[:500])


def checker(file, *arguments):
    """(status, output) of examples/check_plan.py."""
    before, out = sys.argv, io.StringIO()
    sys.argv = ["check_plan.py", str(file), *arguments]
    try:
        with contextlib.redirect_stdout(out):
            return check_plan.main(), out.getvalue()
    finally:
        sys.argv = before


def moves(schedule):
    """(chunk and hop of each transfer, steps)"""
    return sum(c * len(path) for c, path in zip(schedule["count"], schedule["path"])), max(schedule["step"], default=0) + 1


def by_checker(planned):
    """The rules and the picoseconds by examples/check_plan.py, which shares nothing with the program."""
    text = planned.shell.read(planned.file)
    schedule = json.loads(text)["schedule"]
    number, steps = moves(schedule)
    if number > MOST_MOVES:
        return
    model = planned.row["model"]
    size, expected = planned.size(), planned.row["time_us"]
    if number * min(-(-size // 65536), 65536 // max(number, 1) + 64 * steps) > MOST_JOBS:
        size = 65536  # one segment
        done = planned.shell.run("simulate", planned.file, "--sizes", size, "--json")
        if done.code != 0 or number > MOST_JOBS:
            return  # nothing would be left of some part
        expected = done.json()[0]["time_us"]
    try:
        status, out = checker(planned.shell.folder / planned.file, "--size", str(size), "--model", model)
    except Exception as error:
        raise Fault(f"check_plan.py: {type(error).__name__}", repr(error)) from error
    if status != 0:
        raise Fault(f"check_plan.py: {out[:4]}", out[:500])
    same_time("check_plan.py: another time", int(out.split()[-1]) / 1e6, expected)


def simulate(planned):
    size = planned.size()
    doubles = 0 < size < 1 << 50 and planned.row["time_us"] < MOST_DOUBLED_US
    sizes = [size, 2 * size] if doubles else [size]
    done = planned.shell.run("simulate", planned.file, "--sizes", ",".join(map(str, sizes)), "--json")
    rows = must(done, "refuses a plan").json()
    same_time("simulate: another time than plan's", rows[0]["time_us"], planned.row["time_us"])
    if not planned.is_group():
        same_time("simulate: another bound than plan's", rows[0]["bound_us"], planned.row["bound_us"])
    rise(rows, "simulate", REORDERED if "overhead=" in json.loads(planned.shell.read(planned.file))["topology"] else FALLS)


def rise(rows, command, falls=FALLS):
    # Where there are programs, their time decides between plans.
    time = "time_program_us" if all(row.get("time_program_us") for row in rows) else "time_us"
    for before, after in zip(rows, rows[1:]):
        for name, most in ((time, falls), ("bound_us", ROUNDING)):
            if after[name] < before[name] * (1 - most):
                raise Fault(f"{command}: {name} falls as the size grows", f"{before} and {after}")
    for row in rows:
        if row["time_us"] < row["bound_us"] * (1 - ROUNDING):
            raise Fault(f"{command}: faster than the bound", str(row))


def program(planned):
    if not planned.has_program() or planned.is_group():
        return
    machine = flag_value(planned.request.of_plan, "--machine")
    words = ("--machine", machine) if machine else ()
    done = planned.shell.run("simulate", planned.file, "--level", "program", *words, "--json")
    time_us = must(done, "refuses a program").json()[0]["time_us"]
    same_time("simulate: another time of the program than plan's", time_us, planned.row["time_program_us"])


def again(planned):
    """The same command writes the same bytes."""
    if flag_value(planned.request.of_plan, "--time-limit"):
        return
    done = must(planned.shell.run(*plan_words(planned.request, "again.plan.json")), "refuses what it planned before")
    timeless = lambda row: {key: value for key, value in row.items() if key not in ("synthesis_s", "total_s", "file")}
    if timeless(done.json()) != timeless(planned.row):
        raise Fault("plan: prints something else the second time", done.out[:500])
    if planned.shell.read(planned.file) != planned.shell.read("again.plan.json"):
        raise Fault("plan: writes other bytes the second time", " ".join(done.words))


def emit(planned, to, *flags):
    if not planned.has_program():
        return
    done = planned.shell.run("emit", planned.file, "--to", to, *flags, "-o", "emitted")
    too_long = done.code == 5 and planned.row["time_us"] >= FOREVER_US  # a trace has no times beyond
    if done.code not in (0, 1) and not too_long:
        raise Fault(f"emit: exit code {done.code}", done.err)
    if done.code == 0 and to in ("msccl-xml", "mscclpp-json"):
        back(planned)


def back(planned):
    """What was emitted for another tool is read again, and proved."""
    kind, root = flag_value(planned.request.of_collective, "-c"), ()
    if kind in ROOTED:
        root = ("--root", json.loads(planned.shell.read(planned.file))["collective"]["root"])
    done = planned.shell.run("import", "emitted", *root, "-o", "back.plan.json")
    must(done, "refuses what emit wrote")
    must(planned.shell.run("verify", "back.plan.json"), "refuses what import wrote")


def run(planned, *flags):
    """Every element is right."""
    if not planned.has_program() or planned.row["ranks"] > 16:
        return
    check_run(planned.shell.run("run", planned.file, "--iters", 1, "--warmup", 0, *flags, "--json"))


def check_run(done):
    if "nothing moved" in done.err:
        raise Fault("run: hangs", done.err)
    for row in done.json() if done.code == 0 else ():
        if row["wrong"] != 0:
            raise Fault("run: wrong elements", str(row))


def view(planned):
    must(planned.shell.run("view", planned.file, "-o", "page.html"), "refuses a plan")


def again_from(planned):
    """A plan that starts from this one is no slower."""
    engine = flag_value(planned.request.of_plan, "-e") or "auto"
    if engine not in ("auto", "greedy") or planned.is_group():
        return
    words = [word for flag in planned.request.of_plan if flag[0] not in ("--chunks", "--steps", "--rounds") for word in flag]
    done = planned.shell.run("plan", *main_words(planned.request), *words, "--from", planned.file, "--json")
    if done.code == 0 and done.json()["time_us"] > planned.row["time_us"] * (1 + ROUNDING):
        raise Fault("plan --from: slower", f"{done.json()['time_us']} us from {planned.row['time_us']} us")


STEPS = {
    "bound": bound,
    "verify": verify,
    "check_plan": by_checker,
    "simulate": simulate,
    "program": program,
    "again": again,
    "emit": emit,
    "run": run,
    "view": view,
    "from": again_from,
}


def take_steps(planned):
    for name, *words in planned.request.then:
        STEPS[name](planned, *words)


# ---- Plays ----


def play_plan(request, shell):
    planned = make_plan(request, shell)
    if isinstance(planned, str):
        return planned
    take_steps(planned)
    return "planned"


def play_odd(request, shell):
    done = shell.run(*plan_words(request))
    return "planned" if done.code == 0 else f"refused {done.code}"


def play_sizes(request, shell):
    rows = []
    for size in request.sizes:
        done = shell.run(*plan_words(request, size=size))
        if done.code == 0:
            rows.append(done.json())
            check_row(rows[-1])
    rise(rows, "plan")
    return "planned" if rows else "refused"


def play_engines(request, shell):
    """auto is at most WORSE times as slow as the best engine by itself."""
    request = request._replace(of_plan=(("--machine", "none"),))
    done = shell.run(*plan_words(request))
    if done.code != 0:
        return f"refused {done.code}"
    row = done.json()
    compared = shell.run("compare", *main_words(request), "--machine", "none", "--json")
    rows = must(compared, "refuses what was planned").json()
    best = min((other for other in rows if other["engine"] != "auto"), key=lambda other: other["time_us"], default=row)
    if row["time_us"] > WORSE * best["time_us"]:
        raise Fault("plan: auto is slower than an engine", f"{row['time_us']} us; {best['engine']} {best['time_us']} us")
    return "planned"


def play_relations(request, shell):
    """A bound does not depend on the order of nodes, and no bound is lower without a link. Plans may be apart: a word says so."""
    planned = [shell.run(*plan_words(request._replace(topology=name))) for name in (request.topology_word(), "relabelled.xml", "less.xml")]
    if planned[0].code != 0 or planned[1].code != 0:
        if planned[0].code != planned[1].code:
            raise Fault("plan: another exit code in another order of nodes", f"{planned[0].err} {planned[1].err}")
        return f"refused {planned[0].code}"
    whole, relabelled = (done.json() for done in planned[:2])
    same_time("plan: another bound in another order of nodes", whole["bound_us"], relabelled["bound_us"])
    apart = abs(whole["time_us"] - relabelled["time_us"]) > APART * whole["time_us"]
    if planned[2].code == 0:
        less = planned[2].json()
        if less["bound_us"] < whole["bound_us"] * (1 - ROUNDING):
            raise Fault("plan: a lower bound without a link", f"{less['bound_us']} us, {whole['bound_us']} us with it")
        apart = apart or less["time_us"] < (1 - FALLS) * whole["time_us"]
    return "apart" if apart else "alike"


def play_compare(request, shell):
    """Each row's time is no less than its bound, and the machine is described in every form."""
    for form in ("text", "json", "svg", "dot"):
        shown = shell.run("topo", request.topology_word(), *flat(request.of_machine), "--format", form)
    json_flag = () if ("--csv",) in request.of_plan else ("--json",)
    words = (*main_words(request), *flat(request.of_plan), *json_flag)
    done = shell.run("compare", *words, *(("--sizes", ",".join(request.sizes)) if request.sizes else ()))
    if done.code != 0:
        return f"refused {done.code}"
    if shown.code != 0:
        raise Fault("compare: takes a machine that topo refuses", shown.err)
    for row in done.json() if json_flag else ():
        if "planned" not in row and row["time_us"] < row["bound_us"] * (1 - ROUNDING):
            raise Fault("compare: faster than the bound", str(row))
    return "compared"


def play_library(request, shell):
    """A plan there is, unless nothing is left of so small a size."""
    done = shell.run(*plan_words(request))
    if done.code == 2 and "rounds them down to none" in done.err:
        return "too small"
    check_row(must(done, "refuses a machine of the library").json())
    return "planned"


def play_repair(request, shell):
    before = make_plan(request._replace(of_machine=()), shell)
    if isinstance(before, str):
        return before
    done = shell.run(*plan_words(request._replace(of_plan=()), "repaired.plan.json"), "--from", PLAN)
    if done.code != 0:
        return f"refused {done.code}"
    row = done.json()
    check_row(row)
    take_steps(Planned(request._replace(of_plan=()), shell, row, "repaired.plan.json"))
    return "repaired"


def changed_text(request, text):
    for seed in request.changes:
        text = change(text, seed)
    return text


def play_changed(request, shell):
    return CHANGED[request.target](request, shell)


def changed_plan(request, shell):
    planned = make_plan(request, shell)
    if isinstance(planned, str):
        return planned
    shell.write("changed.plan.json", changed_text(request, shell.read(PLAN)))
    verified = shell.run("verify", "changed.plan.json").code == 0
    others = [
        shell.run("simulate", "changed.plan.json", "--json"),
        shell.run("run", "changed.plan.json", "--sizes", "4KiB", "--iters", 1, "--warmup", 0, "--json"),
        shell.run("emit", "changed.plan.json", "--to", random.Random(sum(request.changes)).choice(("cuda", "msccl-xml", "svg")), "-o", "e"),
    ]
    for done in others:
        if done.code == 0 and not verified:
            raise Fault(f"{done.words[0]}: takes a plan that verify refuses", shell.done[1].out[:500])
    if not verified:
        return "refused"
    check_run(others[1])
    text = shell.read("changed.plan.json")
    if text == shell.read(PLAN):
        return "the same"
    try:
        if moves(json.loads(text)["schedule"])[0] > MOST_JOBS:
            return "verified"
        status, out = checker(shell.folder / "changed.plan.json", "--size", "4096")
    except Exception:
        return "verified"  # check_plan.py does not promise to read what is no plan file in every letter
    if status != 0:
        raise Fault("verify: takes a plan that check_plan.py refuses", out[:500])
    return "verified"


def changed_machine(request, shell):
    if isinstance(request.topology, Machine):
        text = request.topology.xml()
    elif request.files:
        text = shell.read(request.topology)
    else:
        done = shell.run("topo", request.topology, "--format", "xml")
        if done.code != 0:
            return f"refused {done.code}"
        text = done.out
    shell.write("changed.xml", changed_text(request, text))
    request = request._replace(topology="changed.xml")
    limits = ("--time-limit", "4s", "--memory-limit", "1GiB")
    read = shell.run("topo", "changed.xml", *flat(request.of_machine), "--format", "xml", *limits)
    if read.code == 0 and not request.of_machine:
        shell.write("expanded.xml", read.out)
        second = must(shell.run("topo", "expanded.xml", "--format", "xml", *limits), "refuses what it wrote")
        if second.out != read.out:
            raise Fault("topo: writes another machine than it read", second.out[:500])
    shell.run("bound", *main_words(request), *limits, "--json")
    planned = shell.run(*plan_words(request, PLAN), *limits)
    if planned.code == 0 and read.code in (1, 2):
        raise Fault("plan: takes a machine that topo refuses", read.err)
    if planned.code != 0:
        return f"refused {planned.code}"
    check_row(planned.json())
    must(shell.run("verify", PLAN), "refuses a plan")
    return "read"


def changed_emitted(request, shell):
    planned = make_plan(request, shell)
    if isinstance(planned, str):
        return planned
    if not planned.has_program() or shell.run("emit", PLAN, "--to", request.target, "-o", "emitted").code != 0:
        return "not emitted"
    return import_changed(request, shell, shell.read("emitted"))


def changed_foreign(request, shell):
    return import_changed(request, shell, shell.read(request.files[0][0]))


def import_changed(request, shell, text):
    shell.write("changed.foreign", changed_text(request, text))
    limits = ("--time-limit", "10s", "--memory-limit", "1GiB")
    if shell.run("import", "changed.foreign", "-o", "i.plan.json", *limits).code != 0:
        return "refused"
    must(shell.run("verify", "i.plan.json"), "refuses what import wrote")
    check_run(shell.run("run", "i.plan.json", "--sizes", "4KiB", "--iters", 1, "--warmup", 0, "--json"))
    return "imported"


def changed_file(request, shell):
    """A file that says what is planned."""
    shell.write(request.target, changed_text(request, shell.read(request.target)))
    done = shell.run(*plan_words(request, PLAN), "--time-limit", "4s", "--memory-limit", "1GiB")
    if done.code != 0:
        return f"refused {done.code}"
    check_row(done.json())
    must(shell.run("verify", PLAN), "refuses a plan")
    return "read"


CHANGED = {
    "plan": changed_plan,
    "machine": changed_machine,
    "msccl-xml": changed_emitted,
    "mscclpp-json": changed_emitted,
    "foreign": changed_foreign,
    "own.json": changed_file,
    "groups.json": changed_file,
    "counts.csv": changed_file,
}

PLAYS = {
    "plan": play_plan,
    "odd": play_odd,
    "sizes": play_sizes,
    "engines": play_engines,
    "compare": play_compare,
    "relations": play_relations,
    "library": play_library,
    "repair": play_repair,
    "changed": play_changed,
}


def play(request, shell):
    """Writes a request's files and plays it."""
    if isinstance(request.topology, Machine):
        shell.write(request.topology_word(), request.topology.xml())
    for name, text in request.files:
        shell.write(name, text)
    return PLAYS[request.play](request, shell)
