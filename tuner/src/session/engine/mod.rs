//! Which engine a session drives: ours, or the one of a profile.
mod check;
mod domain;
mod launched;
pub(crate) mod programs;
#[cfg(test)]
mod tests;

use std::path::Path;

use hpl::backend::host::kernels::linked;
use hpl::machine::host::HostFacts;
use objectives::foreign::{Foreign, MatrixMemory, PROFILE_SCHEMA, Profile, SHIPPED};
use objectives::launcher::{MpiJob, says_processes, words as launcher_words};
use objectives::real::RealRuns;
use space::candidate::EngineProfile;
use space::domain::{DomainError, DomainSpec, Expert, ForeignDomain, LimitError, Limits, default_candidate, squarest};
use space::machine::Machine;
use space::nearest::hint;
use space::workspace::{RunShape, Workspace};
use space::{Candidate, HplParams, KernelChoice};

pub use self::launched::EngineCommand;
use self::programs::{found, from_any_folder, launcher_here, launcher_of_profile, xhpl_beside};
use crate::error::RecordError;
use crate::exit::bad_input;
use crate::record::Row;
use crate::record::folder::{RunFolder, replace_file};
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::session::Session;

/// The program of a profile whose runs are those of this program.
const OUR_PROGRAM: &str = "hpl-tune";

/// Largest NB of the domain where no profile says another.
const LARGEST_NB: usize = 512;

/// Multiple that a chosen N is rounded down to: the customary small NB values divide it.
pub(super) const ROUND_TO: usize = 64;

/// N with any NB, as a part of N with the usual one, from which on all are searched at that N.
const WORTH_ALL: f64 = 0.99;

/// Q over P of the squarest grid from above which panels of the largest NB take much memory, as of a prime number of ranks.
const LONG_GRID: usize = 8;

/// The engine of a session.
#[derive(Debug, Clone)]
pub enum Engine {
    /// `hpl-tune run`, the ranks of a run threads of one process.
    Ours,
    /// Our `xhpl`, the ranks of a run processes of an MPI job.
    Launched(MpiJob),
    /// Another HPL by its profile.
    Foreign(Box<Foreign>),
}

impl Engine {
    /// The engine that the flags name: ours, a shipped profile or a file, with another launcher or program if wanted. The launcher is one that is
    /// found from any folder, with the words of its MPI library.
    ///
    /// # Errors
    /// A profile that is none, or a program that is not there; the message says the way out.
    pub fn chosen(engine: Option<&str>, launcher: Option<&str>, program: Option<&Path>) -> anyhow::Result<Self> {
        let Some(name) = engine.filter(|name| *name != Session::OURS) else {
            return if launcher.is_none() && program.is_none() {
                Ok(Self::Ours)
            } else {
                Self::launched(launcher, program)
            };
        };
        let mut profile = profile(name)?;
        let said = |word: &str| profile.command.iter().any(|text| text.contains(word));
        if launcher.is_some() && !said("{launch}") {
            return Err(bad_input(format!(
                "--launcher: engine {name} starts its ranks by its own command; leave --launcher out, or \
                 put {{launch}} into the command of a copy of its profile"
            )));
        }
        if program.is_some() && !said("{program}") {
            return Err(bad_input(format!(
                "--program: the command of engine {name} does not name {{program}}; leave --program out, or change the \
                 command"
            )));
        }
        if let Some(launcher) = launcher {
            let words = launcher_words(launcher);
            if !words.is_empty() && !says_processes(&words) {
                return Err(bad_input(format!(
                    "--launcher {launcher}: the command lacks {{np}}, the number of processes; write it as in \
                     '{launcher} -n {{np}}'"
                )));
            }
            launcher.clone_into(&mut profile.launcher);
        }
        if let Some(program) = program {
            profile.program = program.display().to_string();
        }
        if program.is_none() && profile.program == OUR_PROGRAM {
            profile.program = std::env::current_exe()?.display().to_string();
        }
        profile.program = from_any_folder(Path::new(&profile.program))?.display().to_string();
        if launcher.is_none() {
            profile.launcher = launcher_of_profile(&profile.launcher)
                .map_err(|error| bad_input(format!("--engine {name}: launcher: {error}")))?;
        }
        if let Some(first) = profile.command.first_mut().filter(|first| !first.contains('{')) {
            *first = from_any_folder(Path::new(first.as_str()))?.display().to_string();
        }
        let foreign = Foreign::new(profile).map_err(|error| bad_input(format!("--engine {name}: {error}")))?;
        Ok(Self::Foreign(Box::new(foreign)))
    }

    fn launched(launcher: Option<&str>, program: Option<&Path>) -> anyhow::Result<Self> {
        let launcher =
            launcher.map_or_else(|| launcher_here("mpirun"), |given| Ok(given.to_owned())).map_err(bad_input)?;
        if !says_processes(&launcher_words(&launcher)) {
            return Err(bad_input(format!(
                "--launcher {launcher}: the command lacks {{np}}, the number of processes; leave --launcher and --program \
                 out for ranks that are threads of one process"
            )));
        }
        let here = std::env::current_exe()?;
        let program = from_any_folder(&program.map_or_else(|| xhpl_beside(&here), Path::to_path_buf))?;
        Ok(Self::Launched(MpiJob::new(&launcher, program)))
    }

    /// Whether it is our engine, whichever way its ranks are started.
    pub fn is_ours(&self) -> bool {
        !matches!(self, Self::Foreign(_))
    }

    /// How our engine is started on processes, where it is.
    pub fn mpi_job(&self) -> Option<&MpiJob> {
        match self {
            Self::Launched(job) => Some(job),
            Self::Ours | Self::Foreign(_) => None,
        }
    }

    /// This engine on the nodes of `machine`: a rank has its threads on one of them.
    #[must_use]
    pub fn on(self, machine: Option<&Machine>) -> Self {
        let least = machine.and_then(|machine| machine.nodes.iter().map(|node| node.cores).min());
        let Some(cores) = least else { return self };
        match self {
            Self::Launched(job) => Self::Launched(MpiJob { most_threads: Some(cores), ..job }),
            Self::Foreign(foreign) if foreign.profile().threads => {
                let most_threads = Some(foreign.profile().most_threads.map_or(cores, |most| most.min(cores)));
                let profile = Profile { most_threads, schema_version: PROFILE_SCHEMA, ..foreign.profile().clone() };
                Self::Foreign(Box::new(Foreign::new(profile).expect("it was checked")))
            }
            engine => engine,
        }
    }

    /// Refuses flags that its runs would not obey: the record must say what a run has used.
    ///
    /// # Errors
    /// The flag and the way out.
    pub fn check_flags(&self, threads: Option<u64>, kernels: &KernelChoice) -> anyhow::Result<()> {
        let Self::Foreign(foreign) = self else { return Ok(()) };
        let Profile { name, threads: several, .. } = foreign.profile();
        if *kernels != KernelChoice::Auto {
            return Err(bad_input(format!(
                "--blas {kernels}: engine {name} has kernels of its own, which --blas does not change; leave it out, and give a \
                program that is linked with the wanted kernels by --program"
            )));
        }
        match threads {
            Some(threads) if threads > 1 && !several => Err(bad_input(format!(
                "--threads {threads}: engine {name} does not set the threads of its ranks; leave it out, or write threads \
                 = true and {{threads}} into a copy of its profile"
            ))),
            _ => Ok(()),
        }
    }

    /// The kernels of a session as far as they are known before a calibration, `None` for another engine: what its user
    /// names, else what `machine` was measured with. A description is only read: a library in it is loaded where its user
    /// names it, too.
    ///
    /// # Errors
    /// A library that only `machine` names, and the way out.
    pub fn kernels(&self, asked: &KernelChoice, machine: Option<&Machine>) -> anyhow::Result<Option<KernelChoice>> {
        let described = machine.map(|machine| KernelChoice::from(machine.host.kernels.clone()));
        match (self, asked, described) {
            (Self::Foreign(_), ..) => Ok(None),
            (_, KernelChoice::Auto, Some(KernelChoice::Blas(path))) if path.as_os_str().is_empty() => {
                Err(bad_input("--machine: [host] kernels does not say with which kernels it was measured; give --blas"))
            }
            (_, KernelChoice::Auto, Some(KernelChoice::Blas(path))) => {
                let named = path.display();
                // Published descriptions have a name and a version.
                let give = if path.is_absolute() { format!("--blas {named}") } else { "its path by --blas".to_owned() };
                Err(bad_input(format!(
                    "--machine: [host] kernels is {named}, and libraries named in descriptions are not loaded; give {give} \
                    if you trust it, or --blas builtin"
                )))
            }
            (_, KernelChoice::Auto, Some(described)) => Ok(Some(described)),
            (_, named, _) => Ok(Some(named.clone())),
        }
    }

    /// The engine of the session in `folder`.
    ///
    /// # Errors
    /// [`RecordError`] when its profile is gone or damaged.
    pub fn of(session: &Session, folder: &RunFolder) -> Result<Self, RecordError> {
        if session.engine == Session::OURS {
            let engine = session.mpi_job.clone().map_or(Self::Ours, Self::Launched);
            return Ok(engine.clocked_by(session.slurm_clock.clone()));
        }
        let path = folder.engine_toml();
        let text = plain::text(&path, TEXT_BYTES).map_err(RecordError::read(&path))?;
        let foreign =
            Profile::parse(&text).and_then(Foreign::new).map_err(|error| RecordError::damaged(&path, error))?;
        Ok(Self::Foreign(Box::new(foreign)).clocked_by(session.slurm_clock.clone()))
    }

    /// Keeps the profile, as it was chosen, in `folder`.
    ///
    /// # Errors
    /// [`RecordError`] when it cannot be written.
    pub fn save(&self, folder: &RunFolder) -> Result<(), RecordError> {
        let Self::Foreign(foreign) = self else { return Ok(()) };
        let path = folder.engine_toml();
        let text = toml::to_string(foreign.profile()).map_err(|error| RecordError::damaged(&path, error))?;
        replace_file(&path, text.as_bytes())
    }

    /// Whether a calibration of this host is valid for its runs.
    pub fn calibrates(&self) -> bool {
        !matches!(self, Self::Foreign(foreign) if foreign.profile().memory == MatrixMemory::Device)
    }

    /// Largest NB that is searched, whose workspace a safe N has to leave room for.
    pub fn largest_nb(&self) -> usize {
        match self {
            Self::Ours | Self::Launched(_) => LARGEST_NB,
            Self::Foreign(foreign) => {
                let Profile { nb, usual_nb, .. } = foreign.profile();
                nb.last().copied().unwrap_or(LARGEST_NB.max(usual_nb.unwrap_or(0)))
            }
        }
    }

    /// The largest order whose matrix and workspace fit `memory_bytes` on the squarest grid of `ranks` of `threads` threads each, with any NB that is searched. On devices and
    /// on long grids, where the largest NBs would cost more than a hundredth of N, with the usual one: others are then searched as far as they fit.
    pub fn largest_order(&self, memory_bytes: u64, ranks: usize, threads: usize) -> usize {
        let ((p, q), most, ours) = (squarest(ranks), self.largest_nb(), Some(HplParams::baseline(0, 1, 1).nb));
        let (workspace, usual_nb, device_factors, fact_threads) = match self {
            Self::Ours => (Workspace::Hpl, ours, false, threads),
            Self::Launched(_) => (Workspace::OurProcesses, ours, false, threads),
            Self::Foreign(foreign) => {
                let profile = foreign.profile();
                (profile.workspace, profile.usual_nb, profile.obeyed().usually_factors(), 1)
            }
        };
        let on_devices = workspace == Workspace::OurDevice;
        let with = |nb: usize| {
            let shape = RunShape { n: 0, p, q, nb, depth: 1, device_factors, fact_threads };
            workspace.largest_n(memory_bytes, if on_devices { ROUND_TO } else { nb }, shape)
        };
        let any = with(most);
        let usual = if on_devices || q / p > LONG_GRID { with(usual_nb.unwrap_or(most)) } else { any };
        if any as f64 >= WORTH_ALL * usual as f64 { any } else { usual }
    }

    /// The kernels that a calibration measures where its user names none: of another engine the BLAS that its program loads,
    /// where that can be found out.
    pub fn calibrated_kernels(&self) -> KernelChoice {
        let Self::Foreign(foreign) = self else { return KernelChoice::Auto };
        let program = found(Path::new(&foreign.profile().program));
        program.and_then(|program| linked(&program)).map_or(KernelChoice::Auto, KernelChoice::Blas)
    }

    /// Its name in records.
    pub fn name(&self) -> &str {
        match self {
            Self::Ours | Self::Launched(_) => Session::OURS,
            Self::Foreign(foreign) => &foreign.profile().name,
        }
    }

    /// Where its profile is from; empty for ours.
    pub fn source(&self) -> &str {
        match self {
            Self::Ours | Self::Launched(_) => "",
            Self::Foreign(foreign) => &foreign.profile().source,
        }
    }

    /// Starts its runs, guarded by `program`.
    pub fn runs(&self, program: &Path) -> RealRuns {
        match self {
            Self::Ours => RealRuns::new(program.to_path_buf()),
            Self::Launched(job) => RealRuns::launched(program.to_path_buf(), job.clone()),
            Self::Foreign(foreign) => RealRuns::foreign(program.to_path_buf(), foreign.as_ref().clone()),
        }
    }

    /// The configuration that its users start from, without making what is searched.
    ///
    /// # Errors
    /// [`DomainError`] when ranks or threads do not fit the cores.
    pub fn usual(&self, spec: &DomainSpec) -> Result<Candidate, DomainError> {
        match self {
            Self::Ours | Self::Launched(_) => {
                let usual = default_candidate(&self.on_nodes(spec));
                usual.check()?;
                Ok(usual)
            }
            Self::Foreign(foreign) => ForeignDomain::usual_of(spec, &foreign.profile().obeyed()),
        }
    }

    /// `spec` with the threads that a rank has at most where it is a process, on one node.
    fn on_nodes(&self, spec: &DomainSpec) -> DomainSpec {
        let most_threads = self.mpi_job().map(|job| job.most_threads.unwrap_or(spec.cores));
        DomainSpec { most_threads, ..spec.clone() }
    }

    /// The expert's configuration for the runs of `spec`, of which `default` is the usual one: the rule of thumb for the
    /// processors of `facts`, as far as the engine obeys it. `cpu`: processor of the nodes, where they are described.
    ///
    /// # Errors
    /// Why there is none, as a clause.
    pub fn expert(
        &self,
        spec: &DomainSpec,
        default: &Candidate,
        facts: &HostFacts,
        cpu: Option<&str>,
    ) -> Result<Expert, String> {
        let sharing = facts.cores_sharing.ok_or("caches and sockets have unequally many cores");
        let (rule, workspace, profile) = match self {
            Self::Ours | Self::Launched(_) => {
                let spec = self.on_nodes(spec);
                (Expert::new(&spec, sharing?, facts.advised_nb()?)?, spec.workspace(), EngineProfile::Ours)
            }
            Self::Foreign(_) if !self.calibrates() => {
                return Err("the rule of thumb is for processors, here accelerators hold the matrix".to_owned());
            }
            Self::Foreign(_) if cpu.is_some_and(|cpu| cpu != facts.cpu_model) => {
                return Err("the processors of the described nodes are not those of this host".to_owned());
            }
            Self::Foreign(foreign) => {
                let Profile { nb, obeys, threads, most_threads, .. } = foreign.profile();
                let advised = facts.advised_nb()?;
                let nearest = nb.iter().copied().min_by_key(|nb| nb.abs_diff(advised)).unwrap_or(advised);
                let nb = if obeys.iter().any(|name| name == "nb") { nearest } else { default.hpl.nb };
                let fixed = spec.threads.or((!threads).then_some(1));
                let sharing = sharing?.min(most_threads.unwrap_or(usize::MAX));
                let rule = Expert::new(&DomainSpec { threads: fixed, ..spec.clone() }, sharing, nb)?;
                (rule, foreign.profile().workspace, EngineProfile::Netlib)
            }
        };
        rule.checked(default, (spec.memory_bytes, workspace), profile)
    }

    /// The limits that `text`, in the format of `space.toml`, sets for its dimensions.
    ///
    /// # Errors
    /// [`LimitError`].
    pub fn limits(&self, text: &str) -> Result<Limits, LimitError> {
        match self {
            Self::Ours | Self::Launched(_) => Limits::parse(text),
            Self::Foreign(foreign) => Limits::parse_for(text, &foreign.profile().obeyed()),
        }
    }
}

/// A shipped profile, or that of a file.
fn profile(name: &str) -> anyhow::Result<Profile> {
    if let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
        return Profile::parse(text).map_err(|error| bad_input(format!("--engine {name}: {error}")));
    }
    if name == "xhpl" {
        return Err(bad_input(
            "--engine xhpl: it is our own engine; leave --engine out and give --launcher mpirun --program PATH",
        ));
    }
    let text = std::fs::read_to_string(name).map_err(|error| {
        let known: Vec<&str> = [Session::OURS].into_iter().chain(SHIPPED.iter().map(|(known, _)| *known)).collect();
        let hint = hint(name, known.iter().copied());
        bad_input(format!("--engine {name}: {error}; give a file, or one of {}{hint}", known.join(", ")))
    })?;
    let profile = Profile::parse(&text).map_err(|error| bad_input(format!("{name}: {error}")))?;
    if [Session::OURS, Row::SIMULATED].contains(&profile.name.as_str()) {
        let of_ours = &profile.name;
        return Err(bad_input(format!(
            "{name}: name = '{of_ours}' is what records call our own engine, which a resume would run; give it \
             another name"
        )));
    }
    Ok(profile)
}
