package org.elephanttracks.maven;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.maven.plugins.annotations.Component;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.project.MavenProjectHelper;

import org.elephanttracks.plugin.Failure;
import org.elephanttracks.plugin.Tool;

/** Makes an instrumented copy of the project's jar or war, for a machine that only runs it. */
@Mojo(name = "jar", defaultPhase = LifecyclePhase.PACKAGE, threadSafe = true)
public class JarMojo extends AbstractEtMojo {
    @Component
    private MavenProjectHelper helper;

    /** Classifier of the instrumented copy: app-1.0-et.jar. */
    @Parameter(property = "elephantTracks.classifier", defaultValue = "et", required = true)
    private String classifier;

    /** Whether the copy is installed and deployed with the project. */
    @Parameter(property = "elephantTracks.attach", defaultValue = "true")
    private boolean attach;

    /** The archive to instrument; by default the output of the phase package. */
    @Parameter(property = "elephantTracks.jar")
    private File jar;

    @Override
    void work() throws Failure {
        File original = original();
        String name = original.getName();
        int dot = name.lastIndexOf('.');
        String type = dot < 0 ? "jar" : name.substring(dot + 1);
        String base = dot < 0 ? name : name.substring(0, dot);
        File copy = new File(project.getBuild().getDirectory(), base + "-" + classifier + "." + type);
        File made = at(copy.getName() + ".made");
        try {
            String state = state(original, copy);
            if (copy.exists() && made.exists() && read(made).equals(state)) {
                getLog().info(copy + " is up to date");
            } else {
                instrument(original, copy);
                Files.createDirectories(made.toPath().getParent());
                Files.write(made.toPath(), state(original, copy).getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException error) {
            throw new Failure("cannot write " + made + ": " + error.getMessage(), error);
        }
        if (attach) {
            helper.attachArtifact(project, type, classifier, copy);
        }
    }

    private File original() throws Failure {
        File packed = jar != null ? jar : project.getArtifact().getFile();
        if (packed == null || packed.isDirectory()) {
            // Asked for by itself: an earlier build may have made it.
            String type = project.getArtifact().getArtifactHandler().getExtension();
            packed = new File(project.getBuild().getDirectory(), project.getBuild().getFinalName() + "." + type);
        }
        if (!packed.isFile()) {
            throw new Failure("there is no " + packed + " to instrument: run mvn package et:jar");
        }
        return packed;
    }

    private void instrument(File original, File copy) throws Failure {
        List<String> command = new ArrayList<>();
        command.add(program().getPath());
        command.addAll(hooks());
        command.addAll(Arrays.asList("--force", "--report", "json", original.getPath(), "-o", copy.getPath()));
        JarReport.parse(Tool.report(command, messages())).tell(messages());
        getLog().info("wrote " + copy);
    }

    /** What tells whether the copy is of this original, made by this program in this way. */
    private String state(File original, File copy) throws Failure {
        List<String> state = new ArrayList<>(hooks());
        for (File file : new File[] {program(), original, copy}) {
            state.add(file + " " + file.length() + " " + file.lastModified());
        }
        return String.join("\n", state);
    }

    private static String read(File file) throws IOException {
        return new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
    }
}
