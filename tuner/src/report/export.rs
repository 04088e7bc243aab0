//! The files that repeat the best run: HPL.dat, engine-params.toml, run.sh, and what the final run printed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use space::dat::{DatError, HplDat};
use space::{Candidate, NodeSettings};

use super::digits;
use crate::error::RecordError;
use crate::record::folder::{RunFolder, remove_file, replace_file};

/// The texts of the exported files.
#[derive(Debug, Clone, PartialEq)]
pub struct Exports {
    /// `HPL.dat`, for any HPL.
    pub hpl_dat: String,
    /// `engine-params.toml`, for our engine; none for another one, which reads none.
    pub engine_params: Option<String>,
    /// `run.sh`, a POSIX shell script in the folder of the two.
    pub run_sh: String,
    /// `HPL.out`: the bytes that the final run printed, else the last whole run of the best; none where there was no such run.
    pub hpl_out: Option<Vec<u8>>,
    /// Names and texts of what another engine reads.
    pub inputs: Vec<(String, String)>,
}

/// Why a candidate cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A value does not fit HPL.dat.
    #[error("the best candidate cannot be written as an HPL.dat: {0}")]
    Dat(#[from] DatError),
    /// A value does not fit TOML.
    #[error("the best candidate cannot be written as an engine-params.toml: {0}")]
    Toml(#[from] toml::ser::Error),
    /// A path that cannot be written into a shell script.
    #[error("the program's path cannot be written into a script: {0}")]
    Path(#[from] shlex::QuoteError),
}

impl Exports {
    /// The files for the candidate that ran at `rate_gflops`, of which `how` says whether that is measured. `program` is the
    /// path of `hpl-tune`; `hpl_out` is what the final run printed.
    pub fn new(
        candidate: &Candidate,
        (rate_gflops, how): (f64, &str),
        program: &Path,
        hpl_out: Option<Vec<u8>>,
    ) -> Result<Self, ExportError> {
        let mut dat = HplDat::single(&candidate.hpl);
        dat.comments[1] = format!("hpl-tune: {} GFLOP/s {how}", digits(rate_gflops));
        Ok(Self {
            hpl_dat: dat.write()?,
            engine_params: Some(toml::to_string(&candidate.engine)?),
            run_sh: run_sh(candidate, (rate_gflops, how), program)?,
            hpl_out,
            inputs: Vec::new(),
        })
    }

    /// These files for another engine: `run.sh` holds its command, as it runs in this folder, and its `inputs` are in the same folder;
    /// `settings` are those of the nodes that the command does not make.
    pub fn foreign(
        self,
        command: &str,
        (rate_gflops, how): (f64, &str),
        (candidate, settings): (&Candidate, &NodeSettings),
        inputs: Vec<(String, String)>,
    ) -> Self {
        let (rate, n, settings) = (digits(rate_gflops), candidate.hpl.n, settings_lines(settings));
        let run_sh =
            format!("#!/bin/bash\n# The best configuration: {rate} GFLOP/s {how} at N = {n}.\n{settings}{command}\n");
        Self { run_sh, inputs, engine_params: None, ..self }
    }

    /// Write the files into the run folder; an HPL.out of another run is removed.
    ///
    /// # Errors
    /// [`RecordError::Write`] with the file.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RecordError> {
        replace_file(&folder.hpl_dat(), self.hpl_dat.as_bytes())?;
        if let Some(text) = &self.engine_params {
            replace_file(&folder.engine_params(), text.as_bytes())?;
        }
        let script = folder.run_sh();
        replace_file(&script, self.run_sh.as_bytes())?;
        std::fs::set_permissions(&script, Permissions::from_mode(0o755)).map_err(RecordError::write(&script))?;
        for (name, text) in &self.inputs {
            replace_file(&folder.root().join(name), text.as_bytes())?;
        }
        match &self.hpl_out {
            Some(bytes) => replace_file(&folder.hpl_out(), bytes),
            None => remove_file(&folder.hpl_out()),
        }
    }
}

/// Removes a file that is not of what is exported, where it is there.
/// A script that works from any folder, and with the `hpl-tune` of the path where the original is gone.
fn run_sh(candidate: &Candidate, (rate_gflops, how): (f64, &str), program: &Path) -> Result<String, ExportError> {
    Ok(format!(
        "#!/bin/sh\n\
         # The best configuration: {} GFLOP/s {how} at N = {}. Arguments are passed on.\n\
         {}here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 1\n\
         program={}\n\
         [ -x \"$program\" ] || program=hpl-tune\n\
         exec \"$program\" run --dat \"$here/HPL.dat\" --engine-params \"$here/engine-params.toml\" \"$@\"\n",
        digits(rate_gflops),
        candidate.hpl.n,
        settings_lines(&candidate.engine.settings),
        shlex::try_quote(&program.to_string_lossy())?,
    ))
}

/// What a script says of the settings that the run was measured at: it does not make them, as that needs root and changes the node for
/// others. Empty where none was varied.
pub fn settings_lines(settings: &NodeSettings) -> String {
    let NodeSettings { max_clock_mhz, package_limit_w, gpu_limit_w } = settings;
    let all = |files: &str, value: u64| format!("#   for file in {files}; do echo {value} > \"$file\"; done\n");
    // Other zones beside the packages are those of a whole platform.
    let packages =
        "$(grep -l '^package' /sys/class/powercap/intel-rapl:?/name | sed 's|name$|constraint_[01]_power_limit_uw|')";
    let clock = max_clock_mhz
        .map(|mhz| all("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_max_freq", 1_000 * u64::from(mhz)));
    let limit = package_limit_w.map(|watts| all(packages, 1_000_000 * u64::from(watts)));
    let gpus = gpu_limit_w.map(|watts| format!("#   nvidia-smi --power-limit={watts}\n"));
    let commands: String = clock.into_iter().chain(limit).chain(gpus).collect();
    if commands.is_empty() {
        return commands;
    }
    let words: Vec<String> = settings.named().map(|(name, value)| format!("{name} {value}")).collect();
    let words = words.join(", ");
    format!(
        "# It was measured with the node at {words}. As root, before the run (note what is there, to put it back):\n\
         {commands}echo 'measured with the node at {words}: this script does not set that, see the commands in it' >&2\n"
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::Summary;
    use crate::report::summary::tests::session;

    /// The script runs the right command from another folder, whatever stands in the paths.
    #[test]
    fn the_script_survives_odd_paths() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("it's $HOME \"run\"")).unwrap();
        let program = folder.root().join("print 'args'");
        std::fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let best = Summary::new(&session(), &[row(0)]).best.unwrap();
        let exports =
            Exports::new(&best.candidate, (best.rate_gflops, "measured"), &program, Some("printed".into())).unwrap();
        exports.write(&folder).unwrap();
        let output = Command::new(folder.run_sh()).arg("--force").current_dir("/").output().unwrap();
        let (dat, engine) = (folder.hpl_dat(), folder.engine_params());
        let expected = format!("run\n--dat\n{}\n--engine-params\n{}\n--force\n", dat.display(), engine.display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let dat = HplDat::parse(&std::fs::read_to_string(dat).unwrap()).unwrap();
        assert_eq!(dat.runs(), [best.candidate.hpl]);
        let engine: space::EngineParams = toml::from_str(&std::fs::read_to_string(engine).unwrap()).unwrap();
        assert_eq!(engine, best.candidate.engine);
    }

    #[test]
    fn an_hpl_out_of_another_run_does_not_stay() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let best = Summary::new(&session(), &[row(0)]).best.unwrap();
        let program = Path::new("/usr/bin/hpl-tune");
        let exports = |printed: Option<&str>| {
            let printed = printed.map(|text| text.as_bytes().to_vec());
            Exports::new(&best.candidate, (best.rate_gflops, "measured"), program, printed).unwrap()
        };
        exports(None).write(&folder).unwrap();
        exports(Some("printed")).write(&folder).unwrap();
        assert!(folder.hpl_out().exists());
        exports(None).write(&folder).unwrap();
        assert!(!folder.hpl_out().exists() && folder.hpl_dat().exists());
    }

    #[test]
    fn the_script_says_which_settings_the_run_had() {
        assert_eq!(settings_lines(&NodeSettings::default()), "");
        let lines = settings_lines(&NodeSettings {
            max_clock_mhz: Some(2100),
            package_limit_w: Some(150),
            gpu_limit_w: Some(400),
        });
        assert!(lines.contains("echo 2100000 > ") && lines.contains("echo 150000000 > "), "{lines}");
        assert!(lines.contains("#   nvidia-smi --power-limit=400\n"), "{lines}");
        let script = format!("#!/bin/sh\n{lines}true\n");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && said.contains("max_clock_mhz 2100, package_limit_w 150, gpu_limit_w 400"),
            "{said}"
        );
    }
}
