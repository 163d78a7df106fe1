package org.elephanttracks.maven;

import java.util.Collections;

import org.apache.maven.artifact.DependencyResolutionRequiredException;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.ResolutionScope;

import org.elephanttracks.plugin.Failure;

/**
 * Rewrites the classes, the jars that they need to run, and the JDK. The copies are kept by et-instrument;
 * target/elephant-tracks/main tells where they are.
 */
@Mojo(
    name = "instrument", defaultPhase = LifecyclePhase.PROCESS_CLASSES,
    requiresDependencyResolution = ResolutionScope.RUNTIME, threadSafe = true
)
public class InstrumentMojo extends AbstractEtMojo {
    @Override
    void work() throws Failure, MojoExecutionException {
        try {
            prepare(files(project.getRuntimeClasspathElements()), "main", Collections.<String>emptyList());
        } catch (DependencyResolutionRequiredException error) {
            throw new MojoExecutionException(error.getMessage(), error);
        }
    }
}
