package org.elephanttracks.maven;

import java.io.File;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;

import org.apache.maven.artifact.repository.ArtifactRepository;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProject;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Messages;
import org.elephanttracks.plugin.Preparation;
import org.elephanttracks.plugin.Prepared;
import org.elephanttracks.plugin.Tool;

/** What all goals have: what is hooked, by which program, for which JDK. */
abstract class AbstractEtMojo extends AbstractMojo {
    @Parameter(defaultValue = "${project}", readonly = true, required = true)
    MavenProject project;

    @Parameter(defaultValue = "${session}", readonly = true, required = true)
    MavenSession session;

    /** Classes to hook, such as com.acme.**; all by default. */
    @Parameter(property = "elephantTracks.includes")
    private List<String> includes = new ArrayList<>();

    /** Classes not to hook; takes precedence over includes. */
    @Parameter(property = "elephantTracks.excludes")
    private List<String> excludes = new ArrayList<>();

    /** What the traces are to tell, in one word: counts, objects, references or everything; else events says it. */
    @Parameter(property = "elephantTracks.mode")
    private String mode;

    /** Events to hook: alloc, update, method, exception, or all, and stacks; separated by commas. Or counts. All by default. */
    @Parameter(property = "elephantTracks.events")
    private String events;

    /** Which uses of objects get a record of their own: none, refs or all. */
    @Parameter(property = "elephantTracks.witness", defaultValue = "none")
    private String witness;

    /** The JDK to run on; Maven's own by default. */
    @Parameter(property = "elephantTracks.jdkHome")
    private File jdkHome;

    /** The program et-instrument; by default the one in PATH, else the one installed with this plugin. */
    @Parameter(property = "elephantTracks.executable")
    private File executable;

    /** Where instrumented JDKs and programs are cached; by default elephant-tracks in $XDG_CACHE_HOME or ~/.cache. */
    @Parameter(property = "elephantTracks.cacheDir")
    private File cacheDir;

    /** Do nothing. */
    @Parameter(property = "elephantTracks.skip", defaultValue = "false")
    private boolean skip;

    @Parameter(defaultValue = "${project.build.directory}/elephant-tracks", readonly = true)
    private File folder;

    /** What the goal is for. */
    abstract void work() throws Failure, MojoExecutionException, MojoFailureException;

    @Override
    public final void execute() throws MojoExecutionException, MojoFailureException {
        if (skip || project.getPackaging().equals("pom")) {
            getLog().info(skip ? "skipped: elephantTracks.skip is set" : "nothing to do: the project has no classes");
            return;
        }
        try {
            work();
        } catch (Failure failure) {
            throw new MojoExecutionException(failure.getMessage(), failure);
        }
    }

    /** What the goals leave. */
    final File at(String name) {
        return new File(folder, name);
    }

    final List<String> hooks() throws Failure {
        return Tool.hooks(Tool.events(mode, events), witness, nonNull(excludes), nonNull(includes));
    }

    /** The start of a command line. */
    final List<String> command(String subcommand) throws Failure {
        return Tool.command(program(), subcommand, cacheDir, hooks());
    }

    final File program() throws Failure {
        File found = executable != null ? executable : Tool.inPath();
        // Not where this class comes from: Maven copies plugins into its local repository.
        for (ArtifactRepository repository : project.getPluginArtifactRepositories()) {
            if (found == null && repository.getUrl().startsWith("file:")) {
                found = Tool.installedWith(new File(URI.create(repository.getUrl().replace(" ", "%20")).getPath()));
            }
        }
        if (found == null) {
            throw new Failure("et-instrument not found: pass -DelephantTracks.executable=…, or add it to PATH");
        }
        return found;
    }

    final File jdkHome() {
        return jdkHome != null ? jdkHome : Tool.ownJdk();
    }

    /** Brings the copies of the JDK and of a class path up to date, and leaves in a folder where they are. */
    final Prepared prepare(Collection<File> classPath, String name, Collection<String> harness) throws Failure {
        Prepared prepared = new Preparation(at(name)).run(command("prepare"), jdkHome(), classPath, harness, messages());
        if (prepared.rewrote() == null) {
            getLog().info("nothing to rewrite: all copies are up to date");
        }
        return prepared;
    }

    /** Shows messages as Maven shows its own. */
    final Messages messages() {
        return new Messages() {
            @Override
            public void say(String line) {
                getLog().info(line);
            }

            @Override
            public void warn(String line) {
                getLog().warn(line);
            }
        };
    }

    static List<File> files(List<String> paths) {
        List<File> files = new ArrayList<>();
        paths.forEach(path -> files.add(new File(path)));
        return files;
    }

    static <T> List<T> nonNull(List<T> list) {
        return list == null ? Collections.<T>emptyList() : list;
    }
}
