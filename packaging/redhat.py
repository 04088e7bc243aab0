"""The .rpm, made by rpmbuild; it finds the needed libraries itself."""

from programs import installed
from project import DESCRIPTION, LICENCE, SUMMARY, run


def pack(project, contents, scratch, out):
    """Writes the package and returns its path."""
    root = scratch / "rpm-root"
    installed(project, contents, root)
    files = sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
    own = ["%dir /usr/lib/hpl-tune", "%dir /usr/share/doc/hpl-tune"]
    spec = scratch / "hpl-tune.spec"
    spec.write_text("\n".join([
        "Name: hpl-tune", f"Version: {project.version}", "Release: 1", f"Summary: {SUMMARY}", f"License: {LICENCE}", "",
        "%description", DESCRIPTION, "", "%install", "mkdir -p %{buildroot}", f"cp -a {root}/. %{{buildroot}}", "",
        "%files", *own, *(f"/{path.relative_to(root)}" for path in files), ""]))
    settings = {
        "_topdir": scratch / "rpm", "_rpmdir": out, "_rpmfilename": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
        # As they are: nothing is stripped or linked again.
        "__os_install_post": "%{nil}", "debug_package": "%{nil}", "_build_id_links": "none",
        "_binary_payload": "w1.gzdio" if project.quick else "w6.xzdio", "_buildhost": "localhost",
        "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
    }
    defines = [word for key, value in settings.items() for word in ("--define", f"{key} {value}")]
    run(["rpmbuild", "-bb", "--quiet", "--target", f"{project.processor}-linux", *defines, spec], package="rpm", env=project.environment())
    return out / f"hpl-tune-{project.version}-1.{project.processor}.rpm"
