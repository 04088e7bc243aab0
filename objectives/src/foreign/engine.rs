//! An engine by its checked profile: the command, environment and input of a candidate.

use std::ffi::OsString;
use std::path::Path;

use space::Candidate;
use space::dat::{DatError, HplDat};
use space::params::Coded;

use super::error::ProfileError;
use super::output::{Patterns, PrintedResult};
use super::profile::{Profile, check_values};
use super::template::Template;
use crate::launcher;
use crate::progress::{ProgressPoint, traced};
use crate::slurm_clock::SlurmClock;

/// Placeholders that are filled for every engine.
const PLACEHOLDERS: [&str; 20] = [
    "np",
    "threads",
    "cpus",
    "n",
    "nb",
    "p",
    "q",
    "nbmin",
    "ndiv",
    "pfact",
    "rfact",
    "bcast",
    "depth",
    "swap",
    "threshold",
    "pmap",
    "dat",
    "out",
    "folder",
    "program",
];

/// A checked profile, ready to run candidates.
#[derive(Debug, Clone)]
pub struct Foreign {
    profile: Profile,
    command: Vec<Template>,
    env: Vec<(String, Template)>,
    patterns: Patterns,
    /// Where the words of the launcher end in the command.
    launch_end: Option<usize>,
    slurm_clock: Option<SlurmClock>,
}

impl Foreign {
    /// Checks a profile.
    ///
    /// # Errors
    /// [`ProfileError`] naming the key and the way out.
    pub fn new(profile: Profile) -> Result<Self, ProfileError> {
        check_values(&profile)?;
        profile.dimensions.iter().try_for_each(|dim| dim.check(&PLACEHOLDERS))?;
        let known: Vec<&str> =
            PLACEHOLDERS.into_iter().chain(profile.dimensions.iter().map(|d| d.name.as_str())).collect();
        let launcher = launcher::words(&profile.launcher);
        let launch = profile.command.iter().position(|word| word == "{launch}");
        let launch_end = launch.map(|at| at + launcher.len());
        let words = profile.command.iter().flat_map(|word| match word.as_str() {
            "{launch}" => launcher.clone(),
            word => vec![word.to_owned()],
        });
        let command =
            words.map(|word| Template::parse(&word, "command", &known)).collect::<Result<Vec<_>, ProfileError>>()?;
        if command.is_empty() {
            let problem = "has no words without a launcher; add \"{program}\"".to_owned();
            return Err(ProfileError::Value { key: "command", problem });
        }
        let env = profile
            .env
            .iter()
            .map(|(name, text)| Ok((name.clone(), Template::parse(text, &format!("env.{name}"), &known)?)));
        let env = env.collect::<Result<Vec<_>, ProfileError>>()?;
        let patterns = Patterns::new(&profile.patterns)?;
        let foreign = Self { profile, command, env, patterns, launch_end, slurm_clock: None };
        foreign.check_holes()?;
        Ok(foreign)
    }

    /// The checked profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// This engine with the clock of its nodes asked of Slurm, for candidates that have one.
    #[must_use]
    pub fn clocked_by(self, slurm_clock: Option<SlurmClock>) -> Self {
        Self { slurm_clock, ..self }
    }

    /// Whether its command asks Slurm for a clock.
    pub fn asks_for_clock(&self) -> bool {
        self.slurm_clock.is_some()
    }

    /// Whether its command has the words of Slurm's `srun` for a launcher.
    pub fn is_started_by_srun(&self) -> bool {
        self.launch_end.is_some() && launcher::is_srun(&launcher::words(&self.profile.launcher))
    }

    /// The words of the command that runs `candidate` in `folder`.
    pub fn command(&self, candidate: &Candidate, folder: &Path) -> Vec<OsString> {
        self.filled(&self.command, candidate, folder)
    }

    /// `words` of the command, with the clock behind those of the launcher.
    fn filled(&self, words: &[Template], candidate: &Candidate, folder: &Path) -> Vec<OsString> {
        let fill = |word: &Template| word.fill(|name| self.value(name, candidate, folder)).into();
        let mut filled: Vec<OsString> = words.iter().map(fill).collect();
        let clock = self.slurm_clock.as_ref().and_then(|clock| clock.word(&candidate.engine.settings));
        if let Some((at, word)) = self.launch_end.filter(|&at| at <= filled.len()).zip(clock) {
            filled.insert(at, word.into());
        }
        filled
    }

    /// The command of a run with `words` in the place of the program and its flags: these are started where its ranks would be. `None`
    /// where no word of the command is the program alone.
    pub fn started_in_its_place(
        &self,
        candidate: &Candidate,
        folder: &Path,
        words: &[OsString],
    ) -> Option<Vec<OsString>> {
        let program = self.command.iter().position(|word| word.is("program"))?;
        let mut command = self.filled(&self.command[..program], candidate, folder);
        command.extend_from_slice(words);
        Some(command)
    }

    /// The environment variables of that command, in addition to the inherited ones.
    pub fn environment(&self, candidate: &Candidate, folder: &Path) -> Vec<(String, String)> {
        let fixed =
            self.env.iter().map(|(name, text)| (name.clone(), text.fill(|hole| self.value(hole, candidate, folder))));
        let dims = self
            .profile
            .dimensions
            .iter()
            .filter_map(|dim| Some((dim.env.clone()?, self.value(&dim.name, candidate, folder))));
        fixed.chain(dims).collect()
    }

    /// Name and text of its input file, if it has one.
    ///
    /// # Errors
    /// [`DatError`] when HPL.dat cannot hold the candidate.
    pub fn input(&self, candidate: &Candidate) -> Result<Option<(&str, String)>, DatError> {
        let Some(name) = &self.profile.input else { return Ok(None) };
        let mut dat = HplDat::single(&candidate.hpl);
        dat.ns = vec![candidate.hpl.n; self.profile.repeats];
        Ok(Some((name, dat.write()?)))
    }

    /// All results in its output, in order.
    pub fn read(&self, text: &str) -> Vec<PrintedResult> {
        self.patterns.read(text)
    }

    /// The progress that the text reports, rising; empty when the profile has no pattern for it.
    pub fn progress(&self, text: &str) -> Vec<ProgressPoint> {
        traced(text, |line| self.progress_of(line))
    }

    /// The progress that a line reports.
    pub(crate) fn progress_of(&self, line: &str) -> Option<ProgressPoint> {
        self.patterns.progress_of(line)
    }

    /// Whether the profile has a pattern for progress.
    pub(crate) fn reports_progress(&self) -> bool {
        self.patterns.progress.is_some()
    }

    /// The pattern that a line with a result matches, for messages.
    pub fn result_pattern(&self) -> &str {
        self.patterns.result()
    }

    fn value(&self, name: &str, candidate: &Candidate, folder: &Path) -> String {
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let file =
            |name: &Option<String>, usual: &str| folder.join(name.as_deref().unwrap_or(usual)).display().to_string();
        match name {
            "np" => hpl.ranks().to_string(),
            // How many logical CPUs a core has is not known of the nodes of other engines.
            "threads" | "cpus" => engine.threads.to_string(),
            "n" => hpl.n.to_string(),
            "nb" => hpl.nb.to_string(),
            "p" => hpl.p.to_string(),
            "q" => hpl.q.to_string(),
            "nbmin" => hpl.nbmin.to_string(),
            "ndiv" => hpl.ndiv.to_string(),
            "pfact" => hpl.pfact.code().to_string(),
            "rfact" => hpl.rfact.code().to_string(),
            "bcast" => hpl.bcast.code().to_string(),
            "depth" => hpl.depth.to_string(),
            "swap" => hpl.swap.code().to_string(),
            "threshold" => hpl.swap.threshold().to_string(),
            "pmap" => hpl.pmap.code().to_string(),
            "dat" => file(&self.profile.input, "HPL.dat"),
            "out" => file(&self.profile.output, "HPL.out"),
            "folder" => folder.display().to_string(),
            "program" => self.profile.program.clone(),
            name => {
                let usual =
                    || self.profile.dimensions.iter().find(|dim| dim.name == name).map(|dim| dim.values[0].to_string());
                engine.extra.get(name).cloned().or_else(usual).unwrap_or_default()
            }
        }
    }

    /// Every dimension must change environment, command or input, `{dat}` needs an input, and `{out}` an output.
    fn check_holes(&self) -> Result<(), ProfileError> {
        let has =
            |name: &str| self.command.iter().chain(self.env.iter().map(|(_, text)| text)).any(|text| text.has(name));
        if let Some(dim) = self.profile.dimensions.iter().find(|dim| dim.env.is_none() && !has(&dim.name)) {
            let problem = format!("changes nothing; give it env, or use {{{}}} in the command", dim.name);
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem });
        }
        if has("dat") && self.profile.input.is_none() {
            let problem = "is missing, but {dat} is used; name the file that the program reads".to_owned();
            return Err(ProfileError::Value { key: "input", problem });
        }
        if has("out") && self.profile.output.is_none() {
            let problem = "is missing, but {out} is used; name the file that the program writes".to_owned();
            return Err(ProfileError::Value { key: "output", problem });
        }
        if self.profile.input.is_none() && !(has("n") && has("nb") && has("p") && has("q")) {
            let problem = "does not say {n}, {nb}, {p} and {q}, and there is no input file to say them".to_owned();
            return Err(ProfileError::Value { key: "command", problem });
        }
        if let Some(name) = self.profile.obeys.iter().find(|name| self.profile.input.is_none() && !has(name.as_str())) {
            let problem = format!(
                "has {name}, which nothing tells the program; use {{{name}}} in the command or env, or leave {name} out"
            );
            return Err(ProfileError::Value { key: "obeys", problem });
        }
        if self.profile.threads && !has("threads") && !has("cpus") {
            let problem = "is true, but nothing tells the program how many; use {threads} in env or the command";
            return Err(ProfileError::Value { key: "threads", problem: problem.to_owned() });
        }
        Ok(())
    }
}
