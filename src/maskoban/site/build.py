"""Building the static site: a folder that any file server can serve, under any path.

The page is the studio's, with ``js/api.js`` in place of its own. The solver is compiled from the C++ of the native core
to WebAssembly by the ``ziglang`` wheel. ONNX Runtime Web and the GIF encoder come from npm; ``js/package.json`` pins
their versions. The model's files are packed by gzip and named by their hash, so browsers keep them across versions.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from maskoban._util.files import file_errors
from maskoban.diffusion.loading import load, model_folder
from maskoban.diffusion.model import Model
from maskoban.errors import MaskobanError
from maskoban.solving.rating import boxoban_quartiles, rate_many
from maskoban.solving.reference import size_table

JS = Path(__file__).parent / "js"

#: Where the C++ of the solver is: beside this file in a wheel, else in the repository.
NATIVE = [Path(__file__).parent / "native", Path(__file__).parents[3] / "native"]

#: Exceptions of C++ become those of WebAssembly; every current browser has them and SIMD.
COMPILE = [
    "-target",
    "wasm32-wasi",
    "-mcpu=generic+exception_handling+simd128+bulk_memory+multivalue+reference_types",
    "-std=c++20",
    "-O3",
    "-fexceptions",
    "-fwasm-exceptions",
    "-mllvm",
    "-wasm-enable-eh",
    "-mexec-model=reactor",
    "-Wl,--strip-all",
]

#: The files of npm packages that the site needs, and their names in the site.
FROM_NPM = {
    "onnxruntime-web": {"dist/ort.wasm.bundle.min.mjs": "ort.js"},  # its head names its licence
    "gifenc": {"dist/gifenc.esm.js": "gifenc.js", "LICENSE.md": "licences/gifenc.txt"},
}
RUNTIME = "dist/ort-wasm-simd-threaded.wasm"

#: Boards that the model samples for the site, so that a first visit waits for nothing.
FIRST_BOARDS = 12

#: Nothing inline, nothing from other sites. The solver and the network are WebAssembly.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'"
)

_MANIFEST = {
    "name": "maskoban",
    "short_name": "maskoban",
    "description": "Play Sokoban boards that a model draws, watch it draw them, and draw with it.",
    "start_url": "./",
    "scope": "./",
    "display": "standalone",
    "background_color": "#ffffff",
    "theme_color": "#b86a1b",
    "icons": [{"src": "icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"}],
}

Say = Callable[[str], None]


def missing() -> str | None:
    """The sentence that says what a build lacks on this machine, or None."""
    for module in ("ziglang", "fastapi", "uvicorn"):
        if find_spec(module) is None:
            return f"the site needs {module}: pip install 'maskoban[site]'"
    if shutil.which("npm") is None:
        return "the site needs npm, which comes with Node.js; expected a command npm"
    return None


def build(out: str | os.PathLike[str], say: Say = lambda step: None) -> dict[str, int]:
    """Build the site into the folder ``out`` and return the bytes of every file in it.

    The folder appears when the site is complete. An older site in it is replaced; any other content is refused.
    """
    target = Path(out).resolve()
    if target.exists() and not (
        target.is_dir() and ((target / "site.json").is_file() or not any(target.iterdir()))
    ):
        raise MaskobanError(f"{out}: neither empty nor a site; expected a new folder, or the last build")
    if (lack := missing()) is not None:
        raise MaskobanError(lack)
    with file_errors(str(out), "written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".maskoban-", suffix=".part", dir=target.parent))
        try:
            part.chmod(0o755)
            _fill(part, say)
            old = target.with_name(f".maskoban-{secrets.token_hex(4)}.old")
            if target.exists():
                target.rename(old)
            part.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return {
        str(path.relative_to(target)): path.stat().st_size
        for path in sorted(target.rglob("*"))
        if path.is_file()
    }


def _fill(site: Path, say: Say) -> None:
    from maskoban.studio.app import page_files

    say("page")
    for address, (content, _) in page_files().items():
        (site / (address.removeprefix("/") or "index.html")).write_bytes(content)
    for file in JS.glob("*.js"):
        shutil.copyfile(file, site / file.name)
    index = site / "index.html"
    index.write_text(static_page(index.read_text("utf-8")), "utf-8")
    (site / "manifest.webmanifest").write_text(json.dumps(_MANIFEST), "utf-8")
    say("npm packages")
    runtime = _from_npm(site)
    say("solver")
    compile_solver(site / "solver.wasm")
    say("model")
    large = _pack(site, {"ort.wasm": runtime, **_model_files()})
    (site / "site.json").write_text(json.dumps({**_facts(), "files": large}), "utf-8")
    _write_service_worker(site, [entry["url"] for entry in large.values()])


def static_page(html: str) -> str:
    """The studio's page with a content policy, because no server sends one, and the manifest of an installable page.

    >>> static_page("<title>maskoban</title>").count("<meta")
    1
    """
    policy = f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">'
    manifest = '<link rel="manifest" href="manifest.webmanifest">'
    if html.count("<title>") != 1:
        raise MaskobanError("index.html: expected one <title>")
    return html.replace("<title>", f"{policy}\n  {manifest}\n  <title>")


def compile_solver(out: Path) -> None:
    """Compile native/wasm.cpp; the first time takes a minute, because the C++ library is compiled too."""
    native = next((folder for folder in NATIVE if (folder / "wasm.cpp").is_file()), None)
    if native is None:
        raise MaskobanError(f"the C++ of the solver is missing; expected it in {NATIVE[0]}")
    command = [
        sys.executable,
        "-m",
        "ziglang",
        "c++",
        *COMPILE,
        f"-I{native}",
        "-o",
        str(out),
        str(native / "wasm.cpp"),
    ]
    _run(command, "the compiler")


def _from_npm(site: Path) -> bytes:
    """Copy the files of the npm packages into the site; returns the WebAssembly of ONNX Runtime."""
    versions = json.loads((JS / "package.json").read_text("utf-8"))["dependencies"]
    (site / "licences").mkdir()
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{name}@{version}" for name, version in versions.items()]
        _run(["npm", "pack", "--silent", "--pack-destination", folder, *names], "npm")
        for name, wanted in FROM_NPM.items():
            with tarfile.open(Path(folder) / f"{name}-{versions[name]}.tgz") as package:
                for member, place in wanted.items():
                    text = _member(package, member).decode("utf-8")
                    text = re.sub(r"\n//# sourceMappingURL=.*\s*$", "\n", text)
                    (site / place).write_text(text, "utf-8")
                if name == "onnxruntime-web":
                    runtime = _member(package, RUNTIME)
    return runtime


def _member(package: tarfile.TarFile, name: str) -> bytes:
    try:
        file = package.extractfile(f"package/{name}")
    except KeyError:
        file = None
    if file is None:
        raise MaskobanError(f"an npm package has no {name}; expected the version of js/package.json")
    return file.read()


def _model_files() -> dict[str, bytes]:
    folder = model_folder("best")
    names = ("model.int8.onnx", "model.onnx", "critic.onnx", "model.safetensors", "critic.safetensors")
    return {name: (folder / name).read_bytes() for name in names}


def _pack(site: Path, files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Write large files packed by gzip, which browsers unpack; a server need not know how."""
    (site / "files").mkdir()
    packed = {}
    for name, content in files.items():
        data = gzip.compress(content, 9, mtime=0)
        url = f"files/{name}-{sha256(data).hexdigest()[:12]}.bin"
        (site / url).write_bytes(data)
        packed[name] = {"url": url, "bytes": len(data)}
    return packed


def _facts() -> dict[str, Any]:
    """What the page needs to know of the model. It samples with int8 products, as fast as a browser can.

    Without a server there is no model of other sizes.
    """
    from maskoban.studio.sampling import facts

    model = load()
    found = facts(model).model_dump() | {"sizes": None}
    for sampler in found["samplers"]:
        sampler["config"] = sampler["config"] | {"precision": "int8"}
    card = model.card
    return {
        "model": found,
        "first": _first_boards(model),
        "margin": model.denoiser.margin,
        "bound": float(card["critic"]),
        "references": {"boxoban": boxoban_quartiles(), "sizes": size_table()},
    }


def _first_boards(model: Model) -> list[dict[str, Any]]:
    """Boards to begin with, as the page stores those it has drawn ahead."""
    levels = model.generate(FIRST_BOARDS, seed=0, only_solvable=True)
    return [
        {"board": str(level), "title": level.title, "word": rating.difficulty, "pushes": rating.pushes}
        for level, rating in zip(levels, rate_many(levels), strict=True)
    ]


def _write_service_worker(site: Path, large: list[str]) -> None:
    path = site / "service-worker.js"
    files = sorted(
        str(file.relative_to(site).as_posix())
        for file in site.rglob("*")
        if file.is_file() and file.parent.name not in ("files", "licences") and file != path
    )
    text = path.read_text("utf-8")
    digest = sha256(text.encode())
    for file in files:
        digest.update(file.encode() + b"\0" + (site / file).read_bytes())
    kept = ["./", *(file for file in files if file != "index.html")]
    values = {"FILES": kept, "VERSION": digest.hexdigest()[:12], "LARGE": large}
    for name, value in values.items():
        text, count = re.subn(
            rf"^const {name} = .*?;", f"const {name} = {json.dumps(value)};", text, flags=re.M
        )
        if count != 1:
            raise MaskobanError(f"service-worker.js: expected one line 'const {name} = ...;', got {count}")
    path.write_text(text, "utf-8")


def _run(command: list[str], what: str) -> None:
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        lines = [line for line in found.stderr.splitlines() if line.strip()]
        reason = next(
            (line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message"
        )
        raise MaskobanError(f"{what} failed: {reason.strip()}")
